"""What every adapter promises, whatever gateway is behind it (R20–R24). Run for each by test_gateways.py."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.payments.gateway import Charge, DisputeState, GatewayAnswer, GatewayDown, ListedPayment
from tests.support.gateway_setups import Counter, a_counter


async def everything_since(counter: Counter, since: datetime) -> list[ListedPayment]:
    seen: list[ListedPayment] = []
    after: str | None = None
    while True:
        page, after = await counter.gateway.list_recent(since=since, after=after)
        seen += page
        if after is None:
            return seen


@pytest.fixture
def silent_port() -> Iterator[str]:
    """A server that accepts connections and never answers."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


class Contract:
    """For every adapter; `counter` is a fixture of the class that inherits it."""

    async def test_a_charge_returns_all_payment_details(self, counter: Counter) -> None:
        order = counter.order()

        charge = await counter.paid(order)

        assert (charge.answer, charge.amount_minor, charge.currency) == (GatewayAnswer.YES, 4500, "EUR")
        assert charge.reference is not None
        assert charge.refunded_minor == 0

    async def test_it_is_found_by_its_reference_and_by_its_key_alone(self, counter: Counter) -> None:
        order = counter.order()
        charge = await counter.paid(order)

        assert await counter.gateway.look_up(key=order.key, reference=charge.reference) == charge
        assert await counter.gateway.look_up(key=order.key, reference=None) == charge

    async def test_the_same_key_twice_is_the_same_charge(self, counter: Counter) -> None:
        since = datetime.now(UTC) - timedelta(seconds=5)
        order = counter.order()
        charge = await counter.paid(order)

        assert await counter.gateway.charge(order) == charge
        assert [one.charge for one in await everything_since(counter, since) if one.key == order.key] == [
            charge
        ]

    async def test_the_same_key_with_another_amount_returns_the_first_payment(self, counter: Counter) -> None:
        order = counter.order()
        charge = await counter.paid(order)

        assert await counter.gateway.charge(counter.order(key=order.key, amount_minor=9900)) == charge

    async def test_concurrent_charges_with_one_key_charge_once(self, counter: Counter) -> None:
        since = datetime.now(UTC) - timedelta(seconds=5)
        order = counter.order()

        charges = await asyncio.gather(*(counter.gateway.charge(order) for _ in range(5)))

        assert GatewayAnswer.NO not in {charge.answer for charge in charges}
        assert len([one for one in await everything_since(counter, since) if one.key == order.key]) == 1

    async def test_an_unused_key_is_absent(self, counter: Counter) -> None:
        assert await counter.gateway.look_up(key="pay-unknown", reference=None) == Charge(
            answer=GatewayAnswer.ABSENT
        )
        assert (
            await counter.gateway.call_off(key="pay-unknown", reference=None)
        ).answer is GatewayAnswer.ABSENT

    async def test_a_charge_without_a_token_redirects_to_a_page(self, counter: Counter) -> None:
        order = counter.order("")

        charge = await counter.gateway.charge(order)
        waiting = await counter.gateway.look_up(key=order.key, reference=charge.reference)
        await counter.choose(charge, "pay")
        paid = await counter.gateway.look_up(key=order.key, reference=charge.reference)

        assert charge.answer is waiting.answer is GatewayAnswer.UNKNOWN
        assert charge.action_url or charge.client_secret
        assert (paid.answer, paid.amount_minor) == (GatewayAnswer.YES, 4500)

    async def test_an_unpaid_payment_can_be_cancelled(self, counter: Counter) -> None:
        order = counter.order("")
        charge = await counter.gateway.charge(order)

        off = await counter.gateway.call_off(key=order.key, reference=charge.reference)

        assert (off.answer, off.reference) == (GatewayAnswer.YES, charge.reference)
        assert (await counter.gateway.call_off(key=order.key, reference=None)).answer is GatewayAnswer.YES
        assert (await counter.gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.NO

    async def test_a_captured_payment_cannot_be_cancelled(self, counter: Counter) -> None:
        order = counter.order()
        charge = await counter.paid(order)

        off = await counter.gateway.call_off(key=order.key, reference=charge.reference)

        assert off.answer is GatewayAnswer.NO
        assert (await counter.gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.YES

    async def test_a_refund_is_made_once_a_key_and_never_for_more_than_was_paid(
        self, counter: Counter
    ) -> None:
        order = counter.order()
        charge = await counter.paid(order)
        assert charge.reference is not None

        given = [
            await counter.gateway.refund(
                key=f"{order.key}-{name}", reference=charge.reference, amount_minor=amount, currency="EUR"
            )
            for name, amount in (("back-a", 1000), ("back-a", 1000), ("back-b", 3500), ("back-c", 1))
        ]

        assert [one.answer for one in given] == [
            GatewayAnswer.YES,
            GatewayAnswer.YES,
            GatewayAnswer.YES,
            GatewayAnswer.NO,
        ]
        assert given[0] == given[1] != given[2]
        assert given[3].reason
        assert (await counter.gateway.look_up(key=order.key, reference=None)).refunded_minor == 4500

    async def test_a_refund_that_the_bank_returns_later_is_a_no(self, counter: Counter) -> None:
        order = counter.order()
        charge = await counter.paid(order)
        assert charge.reference is not None
        made = await counter.gateway.refund(
            key=f"{order.key}-r", reference=charge.reference, amount_minor=4500, currency="EUR"
        )
        assert made.reference is not None
        before = await counter.gateway.look_up_refund(reference=made.reference)

        await counter.at_sandbox("POST", f"/v1/refunds/{made.reference.replace('rfnd_', 're_', 1)}/fail")
        after = await counter.gateway.look_up_refund(reference=made.reference)

        assert [one.answer for one in (made, before, after)] == [
            GatewayAnswer.YES,
            GatewayAnswer.YES,
            GatewayAnswer.NO,
        ]

    async def test_a_dispute_is_found_with_its_amount_and_its_end(self, counter: Counter) -> None:
        order = counter.order()
        charge = await counter.paid(order)
        assert charge.reference is not None
        found = [await counter.gateway.find_dispute(reference=charge.reference)]

        for state in ("open", "lost"):
            await counter.dispute(order.key, state)
            found.append(await counter.gateway.find_dispute(reference=charge.reference))

        assert found[0] is None
        assert [(one.state, one.amount_minor, one.currency) for one in found[1:] if one] == [
            (DisputeState.OPEN, 4500, "EUR"),
            (DisputeState.LOST, 4500, "EUR"),
        ]

    async def test_an_unpaid_payment_is_not_refunded(self, counter: Counter) -> None:
        charge = await counter.gateway.charge(counter.order(""))
        assert charge.reference is not None

        refunded = await counter.gateway.refund(
            key="back-of-nothing", reference=charge.reference, amount_minor=1, currency="EUR"
        )

        assert refunded.answer is GatewayAnswer.NO

    async def test_payments_are_listed_page_by_page_with_their_keys(self, counter: Counter) -> None:
        since = datetime.now(UTC) - timedelta(seconds=5)
        orders = [counter.order("") for _ in range(105)]  # a page has a hundred
        paid = counter.order()
        await counter.paid(paid)
        for few in (orders[at : at + 15] for at in range(0, 105, 15)):
            await asyncio.gather(*(counter.gateway.charge(order) for order in few))

        seen = {one.key: one for one in await everything_since(counter, since)}

        assert {order.key for order in orders} <= seen.keys()
        assert (seen[paid.key].charge.answer, seen[paid.key].charge.amount_minor) == (GatewayAnswer.YES, 4500)
        assert seen[orders[0].key].charge.answer is GatewayAnswer.UNKNOWN
        assert since - timedelta(seconds=1) <= seen[paid.key].at <= datetime.now(UTC)

    async def test_a_server_that_does_not_answer_is_unknown(self, counter: Counter, silent_port: str) -> None:
        async with a_counter(counter.gateway.name, silent_port, gateway_timeout_ms=100) as silent:
            await self.knows_nothing(silent)

    async def test_a_server_that_is_down_is_unknown(self, counter: Counter) -> None:
        async with a_counter(counter.gateway.name, "http://127.0.0.1:1") as away:
            await self.knows_nothing(away)

    async def test_while_our_key_is_bad_nothing_is_known(self, counter: Counter) -> None:
        # An earlier try with this key may have been made with a good one.
        bad = {"gateway_secret": "x", "stripe_secret_key": "sk_test_x", "razorpay_key_secret": "x"}
        async with a_counter(counter.gateway.name, counter.url, **bad) as denied:
            await self.knows_nothing(denied)

    async def knows_nothing(self, counter: Counter) -> None:
        gateway, order = counter.gateway, counter.order()
        back = gateway.refund(key=order.key, reference="ref", amount_minor=1, currency="EUR")

        assert (await gateway.charge(order)).answer is GatewayAnswer.UNKNOWN
        assert (await gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.UNKNOWN
        assert (await gateway.look_up(key=order.key, reference="ref")).answer is GatewayAnswer.UNKNOWN
        assert (await gateway.call_off(key=order.key, reference=None)).answer is GatewayAnswer.UNKNOWN
        assert (await back).answer is GatewayAnswer.UNKNOWN
        assert await gateway.card_fingerprint("tok_ok") is None
        with pytest.raises(GatewayDown):
            await gateway.list_recent(since=datetime.now(UTC))


class TokenContract:
    """For adapters that charge a token at once."""

    @pytest.mark.parametrize(
        "method, code",
        [
            ("declined", "card_declined"),
            ("insufficient", "insufficient_funds"),
            ("expired_card", "expired_card"),
        ],
    )
    async def test_a_bank_that_refuses_is_a_no_with_a_code_and_a_sentence(
        self, counter: Counter, method: str, code: str
    ) -> None:
        order = counter.order(f"tok_{method}")

        charge = await counter.gateway.charge(order)
        again = await counter.gateway.charge(order)
        found = await counter.gateway.look_up(key=order.key, reference=None)

        assert (charge.answer, charge.code) == (GatewayAnswer.NO, code)
        assert charge.reason is not None
        assert charge.reason.endswith(".")
        assert (again.answer, again.code) == (found.answer, found.code) == (GatewayAnswer.NO, code)

    async def test_an_unknown_token_is_refused(self, counter: Counter) -> None:
        assert (await counter.gateway.charge(counter.order("tok_unknown"))).answer is GatewayAnswer.NO

    async def test_a_lost_answer_is_found_by_the_key_and_returned_again(self, counter: Counter) -> None:
        order = counter.order("tok_timeout_then_paid")

        lost = await counter.gateway.charge(order)
        found = await counter.gateway.look_up(key=order.key, reference=None)

        assert lost.answer is GatewayAnswer.UNKNOWN
        assert found.answer is GatewayAnswer.YES
        assert await counter.gateway.charge(order) == found

    async def test_a_charge_that_never_arrived_is_absent(self, counter: Counter) -> None:
        order = counter.order("tok_timeout_never_paid")

        assert (await counter.gateway.charge(order)).answer is GatewayAnswer.UNKNOWN
        assert (await counter.gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.ABSENT

    async def test_a_fault_of_theirs_is_unknown_and_may_be_tried_again(self, counter: Counter) -> None:
        order = counter.order("tok_error")

        assert (await counter.gateway.charge(order)).answer is GatewayAnswer.UNKNOWN
        assert (await counter.gateway.charge(order)).answer is GatewayAnswer.YES

    async def test_a_payer_is_redirected_to_the_bank_and_back(self, counter: Counter) -> None:
        order = counter.order("tok_3ds")

        charge = await counter.gateway.charge(order)
        await counter.choose(charge, "approve")

        assert charge.answer is GatewayAnswer.UNKNOWN
        assert charge.action_url
        # The same key again gives what has become of it, and not the answer of then.
        assert (await counter.gateway.charge(order)).answer is GatewayAnswer.YES
        assert (await counter.gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.YES

    async def test_a_payer_whom_the_bank_does_not_know_has_not_paid(self, counter: Counter) -> None:
        order = counter.order("tok_3ds")
        charge = await counter.gateway.charge(order)

        await counter.choose(charge, "refuse")

        assert (
            await counter.gateway.look_up(key=order.key, reference=charge.reference)
        ).answer is GatewayAnswer.NO

    async def test_a_payment_pending_at_the_bank_is_unknown_also_when_cancelled(
        self, counter: Counter
    ) -> None:
        order = counter.order("tok_stuck")

        charge = await counter.gateway.charge(order)
        off = await counter.gateway.call_off(key=order.key, reference=charge.reference)

        assert charge.answer is off.answer is GatewayAnswer.UNKNOWN

    async def test_a_refund_that_is_refused_is_a_no(self, counter: Counter) -> None:
        order = counter.order("tok_refund_refused")
        charge = await counter.gateway.charge(order)
        assert charge.reference is not None

        refunded = await counter.gateway.refund(
            key="back-refused", reference=charge.reference, amount_minor=4500, currency="EUR"
        )

        assert (refunded.answer, bool(refunded.reason)) == (GatewayAnswer.NO, True)
        assert (await counter.gateway.look_up(key=order.key, reference=None)).refunded_minor == 0

    async def test_a_refund_whose_answer_is_lost_is_made_once(self, counter: Counter) -> None:
        order = counter.order("tok_refund_timeout")
        charge = await counter.gateway.charge(order)
        assert charge.reference is not None

        given = [
            await counter.gateway.refund(
                key=f"{order.key}-back", reference=charge.reference, amount_minor=4500, currency="EUR"
            )
            for _ in range(2)
        ]

        assert [one.answer for one in given] == [GatewayAnswer.UNKNOWN, GatewayAnswer.YES]
        assert (await counter.gateway.look_up(key=order.key, reference=None)).refunded_minor == 4500

    async def test_a_card_has_the_same_fingerprint_before_and_after_it_is_charged(
        self, counter: Counter
    ) -> None:
        card = await counter.gateway.card_fingerprint("tok_ok:card-7")
        charge = await counter.gateway.charge(counter.order("tok_ok:card-7"))

        assert card is not None
        assert charge.card == card != await counter.gateway.card_fingerprint("tok_ok:card-8")
        assert await counter.gateway.card_fingerprint("tok_unknown") is None
