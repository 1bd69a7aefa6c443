"""The effect of each token on a charge, checked in the adapter and in the sandbox's own books (R20, R21)."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from holdfast.payments.gateway import GatewayAnswer
from tests.support.sandbox_server import QUICK, Desk, a_sandbox, an_order


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with a_sandbox(tmp_path_factory.mktemp("sandbox")) as opened:
        yield opened


class TestTokens:
    @pytest.mark.parametrize("token", ["tok_ok", "tok_twice", "tok_no_webhook", "tok_out_of_order"])
    async def test_the_money_is_taken(self, desk: Desk, token: str) -> None:
        charge = await desk.gateway.charge(an_order(f"{token}:card-7"))

        assert (charge.answer, charge.amount_minor, charge.currency) == (GatewayAnswer.YES, 4500, "EUR")
        assert charge.card == await desk.gateway.card_fingerprint("tok_ok:card-7")

    @pytest.mark.parametrize(
        ("token", "code"),
        [
            ("tok_declined", "card_declined"),
            ("tok_insufficient", "insufficient_funds"),
            ("tok_expired_card", "expired_card"),
        ],
    )
    async def test_the_money_is_not_taken_and_that_stays_so(self, desk: Desk, token: str, code: str) -> None:
        order = an_order(token)

        charges = [await desk.gateway.charge(order) for _ in range(2)]
        charges.append(await desk.gateway.look_up(key=order.key, reference=None))

        assert {(charge.answer, charge.code) for charge in charges} == {(GatewayAnswer.NO, code)}
        assert len({charge.reference for charge in charges}) == 1

    async def test_a_slow_one_takes_its_time(self, desk: Desk) -> None:
        began = time.monotonic()

        charge = await desk.gateway.charge(an_order("tok_slow"))

        assert charge.answer is GatewayAnswer.YES
        assert time.monotonic() - began >= QUICK["slow_s"]

    async def test_the_reply_is_lost_and_the_money_is_taken(self, desk: Desk) -> None:
        order = an_order("tok_timeout_then_paid")

        assert (await desk.impatient.charge(order)).answer is GatewayAnswer.UNKNOWN
        found = await desk.gateway.look_up(key=order.key, reference=None)
        again = await desk.gateway.charge(order)

        assert found.answer is GatewayAnswer.YES
        assert again == found

    async def test_the_request_is_lost_and_stays_lost(self, desk: Desk) -> None:
        order = an_order("tok_timeout_never_paid")

        for _ in range(2):
            assert (await desk.impatient.charge(order)).answer is GatewayAnswer.UNKNOWN
            assert (await desk.gateway.look_up(key=order.key, reference=None)).answer is GatewayAnswer.ABSENT

    async def test_a_lost_reply_ends_with_a_cut_connection(self, desk: Desk) -> None:
        await desk.control(hold_s=0.1)
        try:
            status, why = await desk.charge("tok_timeout_then_paid")
        finally:
            await desk.control(hold_s=30.0)

        assert status == 0
        assert "Disconnected" in why

    async def test_a_late_payment_cannot_be_cancelled(self, desk: Desk) -> None:
        order = an_order("tok_late")

        charge = await desk.gateway.charge(order)
        called_off = await desk.gateway.call_off(key=order.key, reference=charge.reference)

        assert (charge.answer, called_off.answer) == (GatewayAnswer.UNKNOWN, GatewayAnswer.UNKNOWN)
        assert charge.reference is not None
        await desk.becomes(charge.reference, "captured")
        assert (
            await desk.gateway.charge(order)
        ).answer is GatewayAnswer.YES  # as it is now, not as it was then

    async def test_late_money_of_the_other_kind_can(self, desk: Desk) -> None:
        order = an_order("tok_late_open")
        charge = await desk.gateway.charge(order)
        later = await desk.gateway.charge(an_order("tok_late_open"))
        assert charge.reference is not None
        assert later.reference is not None

        called_off = await desk.gateway.call_off(key=order.key, reference=None)

        assert called_off.answer is GatewayAnswer.YES
        await desk.becomes(later.reference, "captured")
        assert await desk.state(charge.reference) == "cancelled"

    async def test_a_pending_payment_stays_pending_until_it_is_cancelled(self, desk: Desk) -> None:
        order, stuck = an_order("tok_never"), an_order("tok_stuck")
        assert (await desk.gateway.charge(order)).answer is GatewayAnswer.UNKNOWN
        assert (await desk.gateway.charge(stuck)).answer is GatewayAnswer.UNKNOWN

        assert (await desk.gateway.call_off(key=order.key, reference=None)).answer is GatewayAnswer.YES
        assert (await desk.gateway.call_off(key=stuck.key, reference=None)).answer is GatewayAnswer.UNKNOWN

    async def test_three_d_secure_has_an_address(self, desk: Desk) -> None:
        charge = await desk.gateway.charge(an_order("tok_3ds"))

        assert charge.answer is GatewayAnswer.UNKNOWN
        assert charge.action_url is not None
        assert charge.action_url.startswith(f"{desk.url}/pay/")

    async def test_it_fails_once_and_then_works_with_the_same_key(self, desk: Desk) -> None:
        order = an_order("tok_error")

        first, second = await desk.gateway.charge(order), await desk.gateway.charge(order)

        assert (first.answer, second.answer) == (GatewayAnswer.UNKNOWN, GatewayAnswer.YES)

    async def test_an_unknown_token_is_a_definite_no(self, desk: Desk) -> None:
        charge = await desk.gateway.charge(an_order("tok_not_listed"))

        assert (charge.answer, charge.code) == (GatewayAnswer.NO, "no_such_method")
        assert await desk.gateway.card_fingerprint("tok_not_listed") is None


class TestCallingOff:
    async def test_too_late_when_the_money_was_taken(self, desk: Desk) -> None:
        order = an_order()
        await desk.gateway.charge(order)

        called_off = await desk.gateway.call_off(key=order.key, reference=None)

        assert (called_off.answer, called_off.code) == (GatewayAnswer.NO, "payment_captured")

    async def test_an_unpaid_payment_can_be_cancelled_repeatedly(self, desk: Desk) -> None:
        order = an_order("")
        charge = await desk.gateway.charge(order)

        for reference in (charge.reference, charge.reference, None):
            called_off = await desk.gateway.call_off(key=order.key, reference=reference)
            assert called_off.answer is GatewayAnswer.YES
        assert (await desk.gateway.look_up(key=order.key, reference=None)).code == "cancelled"

    async def test_cancelling_an_unknown_payment_is_absent(self, desk: Desk) -> None:
        assert (
            await desk.gateway.call_off(key="key-not-used", reference=None)
        ).answer is GatewayAnswer.ABSENT
        assert (await desk.gateway.call_off(key="k", reference="pay_unknown")).answer is GatewayAnswer.ABSENT


class TestRefunds:
    async def test_parts_until_nothing_is_left(self, desk: Desk) -> None:
        order = an_order()
        charge = await desk.gateway.charge(order)
        assert charge.reference is not None

        answers = [
            (
                await desk.gateway.refund(
                    key=f"{order.key}-{part}",
                    reference=charge.reference,
                    amount_minor=amount_minor,
                    currency="EUR",
                )
            ).answer
            for part, amount_minor in enumerate((1500, 2000, 1001, 1000, 1))
        ]

        assert answers == [
            GatewayAnswer.YES,
            GatewayAnswer.YES,
            GatewayAnswer.NO,
            GatewayAnswer.YES,
            GatewayAnswer.NO,
        ]
        found = await desk.gateway.look_up(key=order.key, reference=None)
        assert (found.answer, found.refunded_minor) == (GatewayAnswer.YES, 4500)

    async def test_concurrent_refunds_never_exceed_the_payment(self, desk: Desk) -> None:
        _, payment = await desk.charge()

        answers = await asyncio.gather(
            *(
                desk.ask("POST", f"/v1/payments/{payment['id']}/refunds", {"amount_minor": 1000}, f"r-{n}")
                for n in range(20)
            )
        )

        assert sorted(status for status, _ in answers) == [200] * 4 + [400] * 16
        _, page = await desk.ask("GET", f"/v1/payments/{payment['id']}/refunds")
        assert [one["amount_minor"] for one in page["refunds"]] == [1000] * 4

    async def test_the_same_key_refunds_once(self, desk: Desk) -> None:
        _, payment = await desk.charge()
        path = f"/v1/payments/{payment['id']}/refunds"

        answers = [await desk.ask("POST", path, {"amount_minor": 100}, "refund-once") for _ in range(3)]

        assert answers[0] == answers[1] == answers[2]
        assert (await desk.ask("GET", f"/v1/payments/{payment['id']}"))[1]["refunded_minor"] == 100

    async def test_the_bank_refuses(self, desk: Desk) -> None:
        charge = await desk.gateway.charge(an_order("tok_refund_refused"))
        assert charge.reference is not None

        refund = await desk.gateway.refund(
            key="refused-1", reference=charge.reference, amount_minor=4500, currency="EUR"
        )

        assert (refund.answer, refund.reason) == (GatewayAnswer.NO, "The bank refuses this refund.")
        assert (await desk.gateway.look_up(key="", reference=charge.reference)).refunded_minor == 0

    async def test_the_reply_is_lost_the_first_time_and_the_money_went_back_once(self, desk: Desk) -> None:
        charge = await desk.gateway.charge(an_order("tok_refund_timeout"))
        assert charge.reference is not None

        refunds = [
            await adapter.refund(key="lost-1", reference=charge.reference, amount_minor=4500, currency="EUR")
            for adapter in (desk.impatient, desk.gateway)
        ]

        assert [refund.answer for refund in refunds] == [GatewayAnswer.UNKNOWN, GatewayAnswer.YES]
        assert (await desk.gateway.look_up(key="", reference=charge.reference)).refunded_minor == 4500

    async def test_money_that_was_not_taken_is_not_refunded(self, desk: Desk) -> None:
        _, payment = await desk.charge("tok_never")

        status, page = await desk.ask("POST", f"/v1/payments/{payment['id']}/refunds", {})

        assert (status, page["error"]["code"]) == (400, "payment_not_captured")


class TestKeys:
    async def test_the_same_key_gives_the_same_answer_byte_for_byte(self, desk: Desk) -> None:
        first, again = await desk.charge(key="same-1"), await desk.charge(key="same-1")
        declined = [await desk.charge("tok_declined", key="same-2") for _ in range(2)]

        assert first == again
        assert declined[0] == declined[1]
        assert declined[0][0] == 402

    async def test_the_same_key_for_something_else_is_refused(self, desk: Desk) -> None:
        _, payment = await desk.charge(key="other-1")

        status, page = await desk.charge(key="other-1", amount_minor=1)
        refund = await desk.ask("POST", f"/v1/payments/{payment['id']}/refunds", {}, "other-1")

        assert (status, page["error"]["code"]) == (400, "idempotency_error")
        assert (refund[0], refund[1]["error"]["code"]) == (400, "idempotency_error")

    async def test_a_key_under_way_is_refused_and_answered_afterwards(self, desk: Desk) -> None:
        first, second = await asyncio.gather(
            desk.charge("tok_slow", key="way-1"), desk.charge("tok_slow", key="way-1")
        )

        assert [first[0], second[0]] == [200, 409]
        assert second[1]["error"]["code"] == "key_in_flight"
        assert await desk.charge("tok_slow", key="way-1") == first

    async def test_a_key_under_way_is_unknown_to_the_adapter_and_not_a_no(self, desk: Desk) -> None:
        order = an_order("tok_slow")

        charges = await asyncio.gather(desk.gateway.charge(order), desk.gateway.charge(order))

        assert sorted(charge.answer for charge in charges) == [GatewayAnswer.UNKNOWN, GatewayAnswer.YES]

    async def test_a_refused_refund_is_stored_and_an_invalid_request_is_not(self, desk: Desk) -> None:
        _, payment = await desk.charge()
        path = f"/v1/payments/{payment['id']}/refunds"

        too_much = [await desk.ask("POST", path, {"amount_minor": 9999}, "stored-1") for _ in range(2)]
        mistyped = await desk.charge(key="stored-2", currency="euro")
        corrected = await desk.charge(key="stored-2")

        assert too_much[0] == too_much[1]
        assert (too_much[0][0], mistyped[0], corrected[0]) == (400, 400, 200)

    async def test_a_key_has_at_most_255_characters(self, desk: Desk) -> None:
        assert (await desk.charge(key="k" * 255))[0] == 200
        assert (await desk.charge(key="k" * 256))[0] == 400

    async def test_many_at_once_with_one_key_are_one_payment(self, desk: Desk) -> None:
        answers = await asyncio.gather(*(desk.charge(key="crowd-1") for _ in range(30)))

        made = {page["id"] for status, page in answers if status == 200}
        assert len(made) == 1
        assert {status for status, _ in answers} <= {200, 409}
        assert len((await desk.ask("GET", "/v1/payments?reference=crowd-1"))[1]["payments"]) == 1
