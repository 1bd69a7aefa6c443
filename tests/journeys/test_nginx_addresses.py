"""deploy/nginx.conf: where it stores files, which addresses count as one client, and what probes may do."""

import asyncio
import re
from collections.abc import AsyncIterator
from ipaddress import IPv6Network
from pathlib import Path

import httpx2
import pytest

from tests.support.nginx_front import fronted
from tools.nginx import CONF

# The address that nginx counts, for a client whose address is in a header.
SAYS_ADDRESS = """
        set_real_ip_from 127.0.0.1;
        real_ip_header X-Test-Address;
        location = /address { return 200 $address; }
"""


@pytest.fixture(scope="module")
async def nginx(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx2.AsyncClient]:
    """In front of nothing."""
    async with fronted(tmp_path_factory.mktemp("nginx"), "127.0.0.1:9", more=SAYS_ADDRESS) as client:
        yield client


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:a:b:c:d"),
        ("2001:db8:1::1", "2001:db8:1:0:a:b:c:d"),
        ("2001:db8::1", "2001:db8::a:b:c:d"),
        ("2001::1", "2001::a:b:c:d"),
        ("2001::7:a:b:c:d", "2001:0:0:7::1"),
    ],
)
async def test_all_addresses_of_an_ipv6_line_count_as_one_client(
    nginx: httpx2.AsyncClient, one: str, other: str
) -> None:
    """Also where zeros are written as `::`: each address would have limits of its own otherwise."""
    counted = [
        (await nginx.get("/address", headers={"X-Test-Address": address})).text for address in (one, other)
    ]

    assert counted[0] == counted[1]
    assert IPv6Network(f"{counted[0]}::/64") == IPv6Network((one, 64), strict=False)


async def test_other_addresses_are_clients_of_their_own(nginx: httpx2.AsyncClient) -> None:
    for address in ("192.0.2.7", "::1"):
        assert (await nginx.get("/address", headers={"X-Test-Address": address})).text == address


async def test_probes_are_limited(nginx: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(nginx.get("/readyz") for _ in range(60)))

    assert 429 in {answer.status_code for answer in answers}


def test_its_folders_are_there_after_installing_the_package() -> None:
    """nginx makes the last folder of a path by itself, but not the ones above it."""
    paths = re.findall(
        r"^ *(?:\w+_temp_path|proxy_cache_path|access_log|error_log) (/\S+?);?\s", CONF.read_text(), re.M
    )

    assert len(paths) >= 8
    assert {parent for path in paths if not (parent := Path(path).parent).is_dir()} == set()
