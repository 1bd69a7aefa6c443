"""One contract, three adapters: the sandbox's own wire, and Stripe's and Razorpay's on their SDKs."""

from collections.abc import AsyncIterator

import pytest

from tests.support.gateway_contract import Contract, TokenContract, silent_port
from tests.support.gateway_setups import Counter, a_counter, a_sandbox

__all__ = ["silent_port"]


@pytest.fixture(scope="module")
async def sandbox_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    async with a_sandbox(tmp_path_factory.mktemp("sandbox")) as url:
        yield url


class TestSandbox(Contract, TokenContract):
    @pytest.fixture
    async def counter(self, sandbox_url: str) -> AsyncIterator[Counter]:
        async with a_counter("sandbox", sandbox_url) as opened:
            yield opened


class TestStripe(Contract, TokenContract):
    @pytest.fixture
    async def counter(self, sandbox_url: str) -> AsyncIterator[Counter]:
        async with a_counter("stripe", sandbox_url) as opened:
            yield opened


class TestRazorpay(Contract):
    @pytest.fixture
    async def counter(self, sandbox_url: str) -> AsyncIterator[Counter]:
        async with a_counter("razorpay", sandbox_url) as opened:
            yield opened
