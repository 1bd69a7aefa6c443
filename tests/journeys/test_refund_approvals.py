"""Refunds above an amount wait for a second person, who is never the first, and are given once."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.web.caller import Right, Role
from tests.support.organiser import Organiser, a_stage, show_of, sign_in_organiser
from tests.support.paid_bookings import violations
from tests.support.shows import Fan, fans, problem

LIMIT = 60_000
PRICES = {"Gold": 50_000, "Silver": 50_000}


@dataclass(frozen=True)
class House:
    organiser: Organiser
    second: Organiser  # another member who may refund
    third: Organiser  # an admin of the house
    show_id: int


@dataclass(frozen=True)
class Paid:
    house: House
    buyer: Fan
    booking_id: str

    async def refund(self, who: Organiser, key: str = "", **body: Any) -> httpx2.Response:
        path = f"/bookings/{self.booking_id}/refunds"
        headers = {"idempotency-key": key or secrets.token_hex(8)}
        return await who.send("POST", path, {"reason": "ill", **body}, headers=headers)

    async def proposed(self, **body: Any) -> int:
        answer = await self.refund(self.house.organiser, **(body or {"full": True}))
        assert answer.status_code == 202, answer.text
        return int(answer.json()["proposal_id"])

    async def state(self) -> str:
        return str((await self.buyer.get(f"/bookings/{self.booking_id}")).json()["state"])


@pytest.fixture(scope="module")
async def house(app: App, api: httpx2.AsyncClient) -> House:
    organiser = await sign_in_organiser(app, api)
    show = await organiser.create("/shows", show_of(await a_stage(app, api, organiser), prices=PRICES))
    limits = {"limits": [{"currency": "INR", "amount": LIMIT}]}
    assert (await organiser.send("PUT", "/refund-limits", limits)).json() == limits
    (member,) = await fans(app, api, 1)
    await app.organisations.add_member(organiser.who.account_id, member.account_id, [Right.REFUND.value])
    return House(organiser, Organiser(member), await sign_in_organiser(app, api, Role.ADMIN), show["id"])


@pytest.fixture
async def paid(app: App, api: httpx2.AsyncClient, house: House) -> AsyncIterator[Paid]:
    """A booking of two seats that cost 100 000; whatever the test does, the money adds up afterwards."""
    (buyer,) = await fans(app, api, 1)
    held = await buyer.holds(house.show_id, best={"count": 2})
    assert held.status_code == 201, held.text
    booking_id = held.json()["booking_id"]
    await buyer.post(f"/bookings/{booking_id}/pay", {"method": "tok_ok"})
    yield Paid(house, buyer, booking_id)
    assert await violations(app, house.show_id) == []


def approve(who: Organiser, proposal: int) -> Any:
    return who.send("POST", f"/refund-proposals/{proposal}/approve")


async def actions(who: Organiser, paid: Paid) -> list[str]:
    log = await who.send("GET", "/audit-log", params={"subject": "booking", "id": paid.booking_id})
    return [entry["action"] for entry in log.json()["entries"]]


async def test_a_small_refund_needs_no_second_person(paid: Paid) -> None:
    given = await paid.refund(paid.house.organiser, amount=LIMIT)

    assert (given.status_code, given.json()["refund"]["amount"]) == (201, LIMIT)


async def test_a_large_refund_waits_and_changes_nothing(paid: Paid) -> None:
    answer = await paid.refund(paid.house.organiser, full=True)

    page = answer.json()
    assert (answer.status_code, page["state"], page["amount"]) == (202, "pending", 100_000)
    assert await paid.state() == "confirmed"
    pending = (await paid.house.organiser.send("GET", "/refund-proposals?state=pending")).json()
    assert page["proposal_id"] in [one["proposal_id"] for one in pending["proposals"]]


async def test_another_person_approves_and_the_money_goes_back(paid: Paid) -> None:
    proposal = await paid.proposed()

    given = await approve(paid.house.second, proposal)

    assert (given.status_code, given.json()["refund"]["amount"]) == (200, 100_000)
    assert await paid.state() == "refunded"
    assert await actions(paid.house.organiser, paid) == ["refund.approved", "refund.proposed"]


async def test_no_one_approves_their_own_proposal(app: App, paid: Paid) -> None:
    proposal = await paid.proposed()

    refused = await approve(paid.house.organiser, proposal)

    assert (refused.status_code, problem(refused)["code"]) == (403, "own_proposal")
    assert await paid.state() == "confirmed"
    with pytest.raises(asyncpg.CheckViolationError, match="another_person_approves"):
        await app.postgres.execute(
            "UPDATE refund_proposal SET state = 'approved', decided_by = proposed_by, decided_at = now()"
            " WHERE id = $1",
            proposal,
        )


async def test_a_large_refund_in_small_parts_is_a_large_refund(paid: Paid) -> None:
    first = await paid.refund(paid.house.organiser, amount=40_000)
    second = await paid.refund(paid.house.organiser, amount=40_000)

    assert (first.status_code, second.status_code) == (201, 202)


async def test_small_parts_at_once_do_not_pass_the_limit_together(paid: Paid) -> None:
    answers = await asyncio.gather(
        *(
            paid.refund(paid.house.organiser, amount=25_000, key=f"part-{n}-{paid.booking_id}")
            for n in range(4)
        )
    )

    assert sorted(answer.status_code for answer in answers) == [201, 201, 202, 202]


async def test_of_many_who_approve_at_once_one_gives_the_refund(app: App, paid: Paid) -> None:
    proposal = await paid.proposed()
    people = [paid.house.second, paid.house.third] * 5

    answers = await asyncio.gather(*(approve(who, proposal) for who in people))

    assert sorted({answer.status_code for answer in answers}) == [200, 409]
    assert [answer.status_code for answer in answers].count(200) == 1
    show_id, number = from_public_id(paid.booking_id)
    assert len((await app.refund_store.refunds_of([(show_id, number)]))[show_id, number]) == 1


async def test_approving_and_rejecting_at_once_has_one_outcome(paid: Paid) -> None:
    proposal = await paid.proposed()

    approved, rejected = await asyncio.gather(
        approve(paid.house.second, proposal),
        paid.house.third.send("POST", f"/refund-proposals/{proposal}/reject", {"note": "no"}),
    )

    assert sorted([approved.status_code, rejected.status_code]) == [200, 409]
    assert await paid.state() == ("refunded" if approved.status_code == 200 else "confirmed")


@pytest.mark.parametrize(("who", "state"), [("second", "rejected"), ("organiser", "withdrawn")])
async def test_a_rejected_or_withdrawn_proposal_is_not_approved(paid: Paid, who: str, state: str) -> None:
    proposal = await paid.proposed()
    path = f"/refund-proposals/{proposal}/reject"

    ended = await getattr(paid.house, who).send("POST", path, {"note": "paid in cash"})
    late = await approve(paid.house.third, proposal)

    assert (ended.json()["state"], ended.json()["decided_note"]) == (state, "paid in cash")
    assert (late.status_code, problem(late)["state"]) == (409, state)
    assert await paid.state() == "confirmed"


async def test_an_expired_proposal_is_not_approved(app: App, paid: Paid) -> None:
    proposal = await paid.proposed()
    await app.postgres.execute(
        "UPDATE refund_proposal SET expires_at = now() - interval '1 s' WHERE id = $1", proposal
    )

    late = await approve(paid.house.second, proposal)

    assert (late.status_code, problem(late)["state"]) == (409, "expired")
    assert await paid.state() == "confirmed"


async def test_what_has_changed_since_is_not_approved(paid: Paid) -> None:
    proposal = await paid.proposed()
    await paid.refund(paid.house.organiser, amount=10_000)

    outdated = await approve(paid.house.second, proposal)

    assert (outdated.status_code, problem(outdated)["code"]) == (409, "proposal_outdated")


async def test_the_same_key_finds_the_same_proposal(paid: Paid) -> None:
    first = await paid.refund(paid.house.organiser, key=f"same-{paid.booking_id}", full=True)
    again = await paid.refund(paid.house.organiser, key=f"same-{paid.booking_id}", full=True)
    other = await paid.refund(paid.house.organiser, key=f"same-{paid.booking_id}", amount=90_000)
    await approve(paid.house.second, first.json()["proposal_id"])
    after = await paid.refund(paid.house.organiser, key=f"same-{paid.booking_id}", full=True)

    assert first.json()["proposal_id"] == again.json()["proposal_id"]
    assert (other.status_code, problem(other)["code"]) == (422, "key_reused")
    assert (after.status_code, after.json()["refund"]["amount"]) == (201, 100_000)


async def test_proposals_of_other_organisers_do_not_exist(
    app: App, api: httpx2.AsyncClient, paid: Paid
) -> None:
    stranger, proposal = await sign_in_organiser(app, api), await paid.proposed()

    listed = await stranger.send("GET", "/refund-proposals")
    refused = [
        await approve(stranger, proposal),
        await stranger.send("POST", f"/refund-proposals/{proposal}/reject", {}),
    ]

    assert listed.json()["proposals"] == []
    assert [answer.status_code for answer in refused] == [404, 404]


async def test_a_buyer_s_own_refund_needs_no_second_person(paid: Paid) -> None:
    cancelled = await paid.buyer.delete(f"/bookings/{paid.booking_id}")

    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "refunded")


async def test_another_limit_is_in_the_audit_log(app: App, api: httpx2.AsyncClient) -> None:
    organiser = await sign_in_organiser(app, api)
    await organiser.send("PUT", "/refund-limits", {"limits": [{"currency": "EUR", "amount": 500}]})

    await organiser.send("PUT", "/refund-limits", {"limits": []})

    entry = (await organiser.send("GET", "/audit-log", params={"size": 1})).json()["entries"][0]
    assert (entry["action"], entry["before"], entry["after"]) == ("refund_limit.changed", {"EUR": 500}, {})
    assert (await organiser.send("GET", "/refund-limits")).json() == {"limits": []}


async def test_a_member_removed_meanwhile_approves_nothing(
    app: App, api: httpx2.AsyncClient, paid: Paid
) -> None:
    proposal, organisation = await paid.proposed(), paid.house.organiser.who.account_id
    (member,) = await fans(app, api, 1)
    await app.organisations.add_member(organisation, member.account_id, [Right.REFUND.value])
    path = f"/organisations/{organisation}/members/{member.account_id}"

    removed = await paid.house.organiser.who.delete(path)
    refused = await approve(Organiser(member), proposal)

    assert removed.is_success, removed.text
    assert (refused.status_code, await paid.state()) == (403, "confirmed")
