"""The sandbox's HTTP API: authentication, validation, lists, control; an adapter that never guesses."""

import socket
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.payments.gateway import GatewayAnswer, GatewayDown
from tests.support.sandbox_server import SECRET, Desk, a_sandbox, an_adapter, an_order


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with a_sandbox(tmp_path_factory.mktemp("sandbox")) as opened:
        yield opened


class TestTheWire:
    async def test_without_the_api_key_every_request_is_refused(self, desk: Desk) -> None:
        for path in ("/v1/payments", "/v1/control", "/v1/webhooks", "/v1/methods/tok_ok"):
            for wrong in ({}, {"Authorization": f"Bearer {SECRET}"}, {"Authorization": "Basic eDp5"}):
                async with desk.session.get(desk.url + path, headers=wrong) as answer:
                    assert answer.status == 401

    async def test_a_wrong_secret_leaves_everything_unknown(self, desk: Desk) -> None:
        stranger = an_adapter(desk.url, gateway_secret="whsec_other")

        assert (await stranger.charge(an_order())).answer is GatewayAnswer.UNKNOWN
        assert (await stranger.look_up(key="a", reference="b")).answer is GatewayAnswer.UNKNOWN
        with pytest.raises(GatewayDown):
            await stranger.list_recent(since=datetime.now(UTC))
        await stranger.close()

    @pytest.mark.parametrize(
        "changes",
        [
            {"amount_minor": 0},
            {"amount_minor": -5},
            {"amount_minor": 1.5},
            {"amount_minor": 10**15},
            {"currency": "eur"},
            {"reference": ""},
            {"return_url": "javascript:alert(1)"},
            {"method": "tok_" + "x" * 600},
            {"price": 3},
        ],
    )
    async def test_a_charge_that_cannot_be_is_a_400(self, desk: Desk, changes: dict[str, object]) -> None:
        status, page = await desk.charge(**changes)  # type: ignore[arg-type]

        assert status == 400
        assert page["error"]["reason"]

    async def test_invalid_json_and_long_bodies_are_refused(self, desk: Desk) -> None:
        for body, status in ((b"{", 400), (b"[]", 400), (b"\xff", 400), (b"x" * 70_000, 413)):
            headers = {"Authorization": desk.gateway._open().headers["Authorization"]}
            async with desk.session.post(f"{desk.url}/v1/payments", data=body, headers=headers) as answer:
                assert answer.status == status

    async def test_a_server_that_is_down_is_unknown_and_not_a_refusal(self) -> None:
        with socket.socket() as port:
            port.bind(("127.0.0.1", 0))
            gateway = an_adapter(f"http://127.0.0.1:{port.getsockname()[1]}")

            assert (await gateway.charge(an_order())).answer is GatewayAnswer.UNKNOWN
            assert (await gateway.look_up(key="a", reference=None)).answer is GatewayAnswer.UNKNOWN
            assert (await gateway.call_off(key="a", reference="pay_1")).answer is GatewayAnswer.UNKNOWN
            refund = await gateway.refund(key="a", reference="pay_1", amount_minor=1, currency="EUR")
            assert refund.answer is GatewayAnswer.UNKNOWN
            with pytest.raises(GatewayDown):
                await gateway.list_recent(since=datetime.now(UTC))
            await gateway.close()

    async def test_a_shop_without_a_sandbox_knows_nothing(self) -> None:
        gateway = an_adapter("")

        assert (await gateway.charge(an_order())).answer is GatewayAnswer.UNKNOWN
        assert await gateway.card_fingerprint("tok_ok") is None


class TestLists:
    async def test_pages_list_every_payment_once_including_new_ones(self, desk: Desk) -> None:
        since = time.time()
        first = [(await desk.charge())[1]["id"] for _ in range(5)]

        seen: list[str] = []
        after = ""
        for _ in range(10):
            _, page = await desk.ask("GET", f"/v1/payments?since={since}&limit=2{after}")
            seen += [one["id"] for one in page["payments"]]
            if page["next"] is None:
                break
            after = f"&after={page['next']}"
            if len(first) < 7:
                first.append((await desk.charge())[1]["id"])

        assert seen == first

    async def test_the_adapter_lists_all_payments_of_the_books(self, desk: Desk) -> None:
        since = datetime.now(UTC) - timedelta(milliseconds=1)
        orders = [an_order("tok_ok"), an_order("tok_declined"), an_order("tok_never")]
        for order in orders:
            await desk.gateway.charge(order)

        seen, more = await desk.gateway.list_recent(since=since)

        assert more is None
        assert [(one.key, one.charge.answer) for one in seen] == list(
            zip(
                (order.key for order in orders),
                (GatewayAnswer.YES, GatewayAnswer.NO, GatewayAnswer.UNKNOWN),
                strict=True,
            )
        )

    async def test_a_page_after_nothing_known_is_refused(self, desk: Desk) -> None:
        assert (await desk.ask("GET", "/v1/payments?after=pay_unknown"))[0] == 400
        assert (await desk.ask("GET", "/v1/payments?limit=0"))[0] == 400
        assert (await desk.ask("GET", "/v1/payments?since=yesterday"))[0] == 400


class TestControl:
    async def test_a_storm_is_made_counted_and_ended(self, desk: Desk) -> None:
        await desk.control(decline=1.0)
        try:
            charge = await desk.gateway.charge(an_order("tok_ok"))
        finally:
            page = await desk.control(decline=0.0)

        assert charge.answer is GatewayAnswer.NO
        assert page["counts"]["declined"] >= 1
        assert page["cpu_s"] > 0
        assert {"state", "currency", "count", "amount_minor", "refunded_minor"} == set(page["totals"][0])
        assert (await desk.gateway.charge(an_order("tok_ok"))).answer is GatewayAnswer.YES

    async def test_settings_that_cannot_be_change_nothing(self, desk: Desk) -> None:
        for wrong in ({"decline": 2}, {"weather": 1}, {"decline": "much"}, {"decline": 0.9, "slow": 0.9}):
            status, _ = await desk.ask("POST", "/v1/control", wrong)
            assert status == 400

        assert (await desk.gateway.charge(an_order())).answer is GatewayAnswer.YES
