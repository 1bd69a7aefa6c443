"""A booking is given back: by its owner by the terms, by the organiser as they decide (R24, R31, R33)."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.pricing import RefundPolicy, RefundStep, Terms
from holdfast.web.caller import Role
from tests.support.organiser import Organiser, sign_in_organiser
from tests.support.paid_bookings import violations
from tests.support.shows import Fan, fans, problem

Show = Callable[..., Awaitable[int]]
HALF = Terms(
    fee_minor=100,
    tax_bp=1900,
    refund_policy=RefundPolicy(
        steps=(RefundStep(hours_before=24, percent=50), RefundStep(hours_before=24 * 30, percent=100)),
        keep_fee=True,
    ),
)
NOTHING = Terms(refund_policy=RefundPolicy(steps=()))


async def buys(fan: Fan, show_id: int, *seats: str, method: str = "tok_ok") -> dict[str, Any]:
    held = await fan.holds(show_id, *seats)
    assert held.status_code == 201, held.text
    paid = await fan.post(f"/bookings/{held.json()['booking_id']}/pay", {"method": method})
    assert paid.status_code in (200, 202), paid.text
    page: dict[str, Any] = (await fan.get(f"/bookings/{held.json()['booking_id']}")).json()
    return page


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Organiser:
    return await sign_in_organiser(app, api, Role.ADMIN)


class TestAnOwner:
    async def test_sees_the_refundable_amount_and_the_deadline(self, alice: Fan, a_show: Show) -> None:
        booking = await buys(alice, await a_show(sold_on=HALF), "A-1", "A-2")
        path = f"/bookings/{booking['booking_id']}/refund"

        whole, one = (await alice.get(path)).json(), (await alice.get(path, seats="A-2")).json()

        # 15.00 of which 1.00 is the fee that stays; half of the rest, seat by seat.
        assert (whole["amount"], whole["percent"], whole["paid"], whole["keeps_fee"]) == (
            1400,
            50,
            3000,
            True,
        )
        assert (whole["next_percent"], whole["next_amount"]) == (0, 0)
        assert datetime.fromisoformat(whole["until"]).tzinfo is not None
        assert (one["amount"], one["seats"]) == (700, ["A-2"])

    async def test_a_cancelling_buyer_gets_the_quoted_amount_once(
        self, app: App, alice: Fan, bob: Fan, a_show: Show
    ) -> None:
        show_id = await a_show(sold_on=HALF)
        booking = await buys(alice, show_id, "A-1", "A-2")
        path = f"/bookings/{booking['booking_id']}"
        quote = (await alice.get(path + "/refund")).json()

        first, again = await alice.delete(path), await alice.delete(path)

        assert (first.status_code, first.json()["state"]) == (200, "refunded")
        assert [(one["amount"], one["state"]) for one in first.json()["refunds"]] == [
            (quote["amount"], "done")
        ]
        assert first.json() == again.json() == (await alice.get(path)).json()
        assert (await bob.holds(show_id, "A-1", "A-2")).status_code == 201
        assert await violations(app, show_id) == []

    async def test_a_buyer_without_a_refund_claim_is_refused_and_keeps_the_seats(
        self, alice: Fan, a_show: Show
    ) -> None:
        booking = await buys(alice, await a_show(sold_on=NOTHING), "A-1")

        refused = await alice.delete(f"/bookings/{booking['booking_id']}")

        assert (refused.status_code, problem(refused)["code"]) == (409, "not_refundable")
        assert problem(refused)["quote"]["amount"] == 0
        assert (await alice.get(f"/bookings/{booking['booking_id']}")).json()["state"] == "confirmed"

    async def test_gives_back_one_seat_and_keeps_the_other(self, app: App, alice: Fan, a_show: Show) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1", "A-2")
        path = f"/bookings/{booking['booking_id']}"

        first = await alice.delete(path + "?seats=A-1")
        again = await alice.delete(path + "?seats=A-1")
        never = await alice.delete(path + "?seats=B-1")

        assert first.status_code == 200, first.text
        assert [seat["label"] for seat in first.json()["seats"]] == ["A-2"]
        assert (first.json()["amount"], first.json()["state"]) == (1500, "confirmed")
        assert (again.status_code, again.json()) == (200, first.json())
        assert (never.status_code, problem(never)["code"]) == (422, "seats_not_booked")
        assert (await alice.delete(path)).json()["state"] == "refunded"
        assert await violations(app, show_id) == []

    async def test_a_refund_of_another_amount_than_expected_is_refused_with_the_new_quote(
        self, app: App, alice: Fan, a_show: Show
    ) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1", "A-2")
        path = f"/bookings/{booking['booking_id']}"
        both = (await alice.get(path + "/refund")).json()["amount"]

        refused = await alice.delete(f"{path}?seats=A-1&expected_refund_minor={both}")

        assert (refused.status_code, problem(refused)["code"]) == (409, "refund_changed")
        quote = problem(refused)["quote"]
        assert (quote["seats"], quote["amount"]) == (["A-1"], 1500)
        assert len((await alice.get(path)).json()["seats"]) == 2, "nothing was refunded"
        agreed = f"{path}?seats=A-1&expected_refund_minor={quote['amount']}"
        first, again = await alice.delete(agreed), await alice.delete(agreed)
        assert [(one["amount"], one["state"]) for one in first.json()["refunds"]] == [(1500, "done")]
        assert (again.status_code, again.json()) == (200, first.json()), "a retry returns what the first did"
        assert await violations(app, show_id) == []

    async def test_returns_free_seats_without_a_refund(self, app: App, alice: Fan, a_show: Show) -> None:
        show_id = await a_show(price_minor=0, sold_on=NOTHING)
        booking = (await alice.holds(show_id, "A-1", "A-2")).json()
        path = f"/bookings/{booking['booking_id']}"

        some = await alice.delete(path + "?seats=A-2")
        rest = await alice.delete(path)

        assert (some.json()["state"], len(some.json()["seats"])) == ("confirmed", 1)
        assert (rest.json()["state"], rest.json()["refunds"]) == ("refunded", [])
        assert await violations(app, show_id) == []

    async def test_does_not_give_back_a_ticket_that_was_used(
        self, app: App, alice: Fan, a_show: Show
    ) -> None:
        booking = await buys(alice, await a_show(), "A-1", "A-2")
        await app.postgres.execute(
            "UPDATE ticket SET used_at = now() WHERE show_id = $1 AND number = $2 AND seat = 1",
            *from_public_id(booking["booking_id"]),
        )

        refused = await alice.delete(f"/bookings/{booking['booking_id']}")

        assert (refused.status_code, problem(refused)["code"]) == (409, "seats_used")
        assert problem(refused)["seats"] == ["A-2"]

    async def test_cancelling_during_a_payment_cancels_the_payment(
        self, app: App, alice: Fan, a_show: Show
    ) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1", method="tok_3ds")
        path = f"/bookings/{booking['booking_id']}"
        assert booking["state"] == "paying"

        first, again = await alice.delete(path), await alice.delete(path)

        assert (first.status_code, first.json()["state"]) == (200, "cancelled")
        assert again.json() == first.json()
        assert await violations(app, show_id) == []

    async def test_sees_every_attempt_and_every_refund(self, alice: Fan, a_show: Show) -> None:
        held = (await alice.holds(await a_show(), "A-1")).json()
        path = f"/bookings/{held['booking_id']}"
        await alice.post(path + "/pay", {"method": "tok_declined"})
        await alice.post(path + "/pay", {"method": "tok_ok"})
        await alice.delete(path)

        timeline = (await alice.get(path + "/payments")).json()

        assert [one["step"] for one in timeline["attempts"]] == ["declined", "paid"]
        assert timeline["attempts"][0]["reason"]
        (refund,) = timeline["attempts"][1]["refunds"]
        assert (refund["why"], refund["amount"], refund["state"], refund["seats"]) == (
            "owner",
            1500,
            "done",
            ["A-1"],
        )

    @pytest.mark.parametrize("path", ["", "/refund", "/payments"])
    async def test_another_buyers_booking_is_not_found(
        self, alice: Fan, bob: Fan, a_show: Show, path: str
    ) -> None:
        booking = await buys(alice, await a_show(), "A-1")
        whole = f"/bookings/{booking['booking_id']}{path}"

        answer = await (bob.get(whole) if path else bob.delete(whole))

        assert (answer.status_code, problem(answer)["code"]) == (404, "no_such_booking")


class TestAnOrganiser:
    async def refunds(
        self, organiser: Organiser, booking: dict[str, Any], key: str | None = "k", **body: Any
    ) -> httpx2.Response:
        headers = {"Idempotency-Key": key} if key else {}
        path = f"/bookings/{booking['booking_id']}/refunds"
        return await organiser.send("POST", path, {"reason": "the heating failed", **body}, headers=headers)

    async def test_gives_back_an_amount_some_seats_or_everything(
        self, app: App, admin: Organiser, alice: Fan, a_show: Show
    ) -> None:
        show_id = await a_show(sold_on=NOTHING)
        booking = await buys(alice, show_id, "A-1", "A-2", "A-3")

        amount = await self.refunds(admin, booking, "one", amount=200)
        seats = await self.refunds(admin, booking, "two", seats=["A-2"])
        full = await self.refunds(admin, booking, "three", full=True)

        assert [one.status_code for one in (amount, seats, full)] == [201, 201, 201], full.text
        assert [one.json()["refund"]["amount"] for one in (amount, seats, full)] == [200, 1500, 2800]
        assert [one.json()["left"] for one in (amount, seats, full)] == [4300, 2800, 0]
        assert (seats.json()["seats"], full.json()["state"]) == (["A-1", "A-3"], "refunded")
        assert await violations(app, show_id) == []

    async def test_gives_back_once_for_each_key(self, admin: Organiser, alice: Fan, a_show: Show) -> None:
        booking = await buys(alice, await a_show(), "A-1")

        first, again = [await self.refunds(admin, booking, "same", amount=200) for _ in range(2)]
        other = await self.refunds(admin, booking, "same", amount=300)
        keyless = await self.refunds(admin, booking, None, amount=200)

        assert (first.status_code, again.json()) == (201, first.json())
        assert (other.status_code, problem(other)["code"]) == (422, "key_reused")
        assert (keyless.status_code, problem(keyless)["code"]) == (400, "bad_key")
        assert len((await alice.get(f"/bookings/{booking['booking_id']}")).json()["refunds"]) == 1

    async def test_never_gives_back_more_than_was_paid(
        self, admin: Organiser, alice: Fan, a_show: Show
    ) -> None:
        booking = await buys(alice, await a_show(), "A-1")

        refused = await self.refunds(admin, booking, amount=1501)

        assert (refused.status_code, problem(refused)["code"]) == (409, "refund_too_much")
        assert problem(refused)["left"] == 1500

    @pytest.mark.parametrize("body", [{}, {"amount": 1, "full": True}, {"amount": 0}, {"seats": []}])
    async def test_states_the_exact_refund(
        self, admin: Organiser, alice: Fan, a_show: Show, body: dict[str, Any]
    ) -> None:
        booking = await buys(alice, await a_show(), "A-1")

        refused = await self.refunds(admin, booking, **body)

        assert (refused.status_code, problem(refused)["code"]) == (422, "invalid")

    async def test_has_no_say_in_shows_of_others(
        self, app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Show
    ) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1", method="tok_refund_refused")
        own, stranger = [await sign_in_organiser(app, api) for _ in range(2)]
        await app.postgres.execute(
            "UPDATE event SET organiser_id = $2 WHERE id = (SELECT event_id FROM show WHERE id = $1)",
            show_id,
            own.who.account_id,
        )

        refused = await self.refunds(stranger, booking, full=True)
        made = await self.refunds(own, booking, full=True)
        refund_id = made.json()["refund"]["refund_id"]
        tries = [
            await stranger.send("POST", f"/refunds/{refund_id}/{act}", body)
            for act, body in (("done-by-hand", {"note": "mine"}), ("retry", None))
        ]

        assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_booking")
        assert [(one.status_code, problem(one)["code"]) for one in tries] == [(404, "no_such_refund")] * 2
        assert (await stranger.send("GET", "/refunds", params={"show": show_id})).json()["refunds"] == []
        assert len((await own.send("GET", "/refunds", params={"show": show_id})).json()["refunds"]) == 1

    async def test_settles_by_hand_a_refund_that_the_gateway_refused(
        self, app: App, admin: Organiser, alice: Fan, a_show: Show
    ) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1", method="tok_refund_refused")
        assert (await self.refunds(admin, booking, full=True)).status_code == 201

        query = {"show": show_id, "state": "by_hand"}
        (refund,) = (await admin.send("GET", "/refunds", params=query)).json()["refunds"]
        path = f"/refunds/{refund['refund_id']}"
        retried = await admin.send("POST", f"{path}/retry")
        paid = await admin.send("POST", f"{path}/done-by-hand", {"note": "transfer 4711"})
        late = await admin.send("POST", f"{path}/retry")

        assert (refund["reason"] is not None, retried.json()["state"]) == (True, "by_hand")
        assert (paid.status_code, paid.json()["state"], paid.json()["settled_note"]) == (
            200,
            "done",
            "transfer 4711",
        )
        assert problem(late)["code"] == "wrong_move"
        assert await violations(app, show_id) == []

    async def test_pages_through_refunds(self, admin: Organiser, alice: Fan, a_show: Show) -> None:
        show_id = await a_show()
        booking = await buys(alice, show_id, "A-1")
        for n in range(5):
            await self.refunds(admin, booking, f"page-{n}", amount=1 + n)

        amounts, before = [], ""
        while True:
            query = {"show": show_id, "size": 2, "before": before}
            page = (await admin.send("GET", "/refunds", params=query)).json()
            amounts += [one["amount"] for one in page["refunds"]]
            if (before := page["next"]) is None:
                break

        assert amounts == [5, 4, 3, 2, 1]

    async def test_is_not_a_fan(self, app: App, api: httpx2.AsyncClient, alice: Fan, a_show: Show) -> None:
        booking = await buys(alice, await a_show(), "A-1")
        (gate,) = await fans(app, api, 1, Role.GATE)

        for who in (alice, gate):
            refused = await self.refunds(Organiser(who), booking, full=True)
            assert (refused.status_code, problem(refused)["code"]) == (403, "not_allowed")

    @pytest.mark.parametrize("text", ["x", "a-1-1", "a" * 20 + "-1-1", "a" * 20 + "-1", "a" * 20 + "-1-x"])
    async def test_an_unknown_refund_is_not_found(self, admin: Organiser, text: str) -> None:
        answer = await admin.send("POST", f"/refunds/{text}/retry")

        assert (answer.status_code, problem(answer)["code"]) == (404, "no_such_refund")
