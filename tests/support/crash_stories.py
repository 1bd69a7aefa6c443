"""Stories of a booking in which a process reaches a given point and dies there.

Each story arms the point, goes on as its people would, and says which booking it was and how it must end.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from holdfast.claim import Claim, Settlement
from holdfast.waitlist.entry import NewEntry
from tests.support.crash_scene import Scene
from tests.support.retrying_payer import Payer
from tests.support.shows import API

SEATS = ("A-1", "A-2")
End = tuple[str, str]  # the booking, and the state it must be in
Story = Callable[[Scene], Awaitable[End]]


async def pays(scene: Scene) -> End:
    scene.arm()
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    return await _paid(scene, booking)


async def keeps_it_longer_and_pays(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    path = f"/bookings/{booking}/extend"
    extended = await scene.payer.asks(lambda: scene.payer.fan.post(path))
    assert extended.status_code == 200, extended.text
    return await _paid(scene, booking)


async def is_declined_and_pays_another_way(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    paying = await scene.payer.pays(booking, "tok_declined", waits=False)
    await scene.death()
    declined = await scene.payer.pays(booking, "tok_declined") if paying.status_code != 402 else paying
    assert declined.status_code == 402, declined.text
    return await _paid(scene, booking)


async def is_paid_and_hears_late(scene: Scene) -> End:
    """The gateway took the money and its answer was lost."""
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    return await _paid(scene, booking, "tok_timeout_then_paid")


async def never_reaches_the_gateway(scene: Scene) -> End:
    """The gateway never got the charge; it is sent again, with the same key, until the time is up."""
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    await scene.payer.pays(booking, "tok_timeout_never_paid", waits=False)
    await scene.death()
    await scene.deadline(booking)
    await scene.becomes(booking, "expired")
    return await _gone(scene, booking, "tok_timeout_never_paid")


async def runs_out_of_time(scene: Scene) -> End:
    booking = await _waiting(scene, "tok_never")
    scene.arm()  # before the deadline: a worker may act on it at once
    await scene.deadline(booking)
    await scene.death()
    await scene.becomes(booking, "expired")
    return await _gone(scene, booking, "tok_never")


async def calls_it_off_and_pays_another_way(scene: Scene) -> End:
    booking = await _waiting(scene, "tok_never")
    scene.arm()
    called_off = await scene.payer.lets_go(f"/bookings/{booking}/payment")
    assert called_off.status_code == 200, called_off.text
    await scene.death()
    await scene.becomes(booking, "held")
    return await _paid(scene, booking)


async def lets_the_hold_go(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    gone = await scene.payer.lets_go(f"/bookings/{booking}")
    assert gone.status_code == 200, gone.text
    await scene.death()
    return booking, "cancelled"


async def does_not_pay(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    await scene.deadline(booking)
    await scene.death()
    await scene.becomes(booking, "expired")
    return booking, "expired"


async def is_offered_seats_and_pays(scene: Scene) -> End:
    other = await scene.rival.holds(scene.show_id, *SEATS)
    await _joins_waitlist(scene, scene.payer, 2)
    scene.arm()
    await scene.rival.lets_go(f"/bookings/{other}")
    await scene.death()
    booking = await _offer(scene)
    answer = await scene.payer.pays(booking)
    assert answer.status_code == 200, answer.text
    return booking, "confirmed"


async def releases_seats_that_fit_no_party(scene: Scene) -> End:
    """They are reserved for a while, and then on sale again."""
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    await _joins_waitlist(scene, scene.rival, 6)
    await scene.payer.lets_go(f"/bookings/{booking}")
    scene.arm()
    await scene.office.app.postgres.execute(
        "UPDATE reserved_seat SET since = since - interval '1 h' WHERE show_id = $1", scene.show_id
    )
    await scene.death()
    return booking, "cancelled"


async def keeps_seats_that_the_map_has_lost(scene: Scene) -> End:
    """Another buyer gets past the map, and is refused by the ledger."""
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    row = await scene.booking(booking)
    claim = Claim(row["claim_id"], row["owner_id"], tuple(row["seats"]))
    await scene.office.app.holds.update_map(scene.show_id, Settlement("release", claim))
    scene.arm()
    refused = await scene.rival.asks(lambda: scene.rival.fan.holds(scene.show_id, *SEATS))
    assert refused.json()["code"] == "seats_taken", refused.text
    await scene.death()
    answer = await scene.payer.pays(booking)
    assert answer.status_code == 200, answer.text
    return booking, "confirmed"


async def waits_for_a_silent_gateway(scene: Scene) -> End:
    """The bank has no result: the seats are released, and the payment is watched. Then it is declined."""
    booking = await _waiting(scene, "tok_stuck")
    await scene.deadline(booking, ago_s=3600)
    scene.arm()
    await scene.death()
    await scene.becomes(booking, "expired")
    (payment,) = await scene.taken(booking)
    await scene.bank.decides(payment, "tok_declined")
    await scene.over()
    return booking, "expired"


async def pays_late_while_the_seats_are_free(scene: Scene) -> End:
    booking = await _watched(scene)
    (payment,) = await scene.taken(booking)
    scene.arm()
    await scene.bank.decides(payment)
    await scene.hurry()
    await scene.death()
    await scene.becomes(booking, "confirmed")
    await scene.assert_answered(await scene.payer.pays(booking, "tok_stuck"), booking)
    return booking, "confirmed"


async def pays_late_and_the_seats_are_gone(scene: Scene) -> End:
    booking = await _watched(scene)
    (payment,) = await scene.taken(booking)
    other = await scene.rival.holds(scene.show_id, *SEATS)
    scene.arm()
    await scene.bank.decides(payment)
    await scene.hurry()
    await scene.death()
    await scene.becomes(booking, "failed")
    assert await scene.rival.state_of(other) == "held"
    return await _gone(scene, booking, "tok_stuck", "failed")


async def gives_it_back(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    await scene.payer.pays(booking)
    scene.arm()
    given_back = await scene.payer.lets_go(f"/bookings/{booking}")
    assert given_back.status_code == 200, given_back.text
    await scene.death()
    await scene.over()
    return booking, "refunded"


async def bought_for_a_show_that_is_cancelled(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    await scene.payer.pays(booking)
    scene.arm()
    cancelled = await scene.admin.api.patch(
        f"{API}/admin/shows/{scene.show_id}", json={"cancelled": True}, headers=scene.admin.headers
    )
    assert cancelled.status_code == 200, cancelled.text
    await scene.death()
    await scene.becomes(booking, "refunded")
    await scene.over()
    return booking, "refunded"


async def pays_and_the_gateway_tells_us_first(scene: Scene) -> End:
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    scene.arm()
    return await _paid(scene, booking, "tok_webhook_first")


async def pays_at_the_gateway_and_it_tells_us(scene: Scene) -> End:
    booking = await _waiting(scene, "tok_3ds")
    await scene.rest()
    (payment,) = await scene.taken(booking)
    scene.arm()
    await scene.bank.decides(payment)
    await scene.death()
    await scene.becomes(booking, "confirmed")
    return await _paid(scene, booking, "tok_3ds")


# ── parts of stories ──────────────────────────────────────────────────────────────────


async def _joins_waitlist(scene: Scene, payer: Payer, seats: int) -> None:
    """Although other seats are on sale: these are the ones that the story is about."""
    new = NewEntry(
        show_id=scene.show_id,
        owner_id=payer.fan.account_id,
        seats=seats,
        categories=(),
        price_minor_max=None,
        together=True,
        until=datetime.now(UTC) + timedelta(hours=1),
    )
    await scene.office.app.waitlists.store.add(new)


async def _offer(scene: Scene) -> str:
    """The booking of the payer's offer, as soon as there is one."""
    found: list[str] = []

    async def is_offered() -> bool:
        page = await scene.payer.asks(lambda: scene.payer.fan.get(f"/shows/{scene.show_id}/waitlist"))
        offer = page.json()["entry"]["offer"]
        found.extend([offer["booking_id"]] if offer else [])
        return bool(found)

    await scene.patiently(is_offered)
    return found[0]


async def _paid(scene: Scene, booking: str, method: str = "tok_ok") -> End:
    """Paid, though a process dies on the way; the same request again has the same answer."""
    first = await scene.payer.pays(booking, method, waits=False)
    await scene.death()
    answer = await scene.payer.pays(booking, method)
    assert answer.status_code == 200, answer.text
    if first.status_code == 200:
        assert answer.json() == first.json()
    return booking, "confirmed"


async def _gone(scene: Scene, booking: str, method: str, end: str = "expired") -> End:
    answer = await scene.payer.pays(booking, method)
    assert (answer.status_code, answer.json()["code"]) == (410, "hold_gone"), answer.text
    return booking, end


async def _waiting(scene: Scene, method: str) -> str:
    """A booking whose payment the gateway has not decided."""
    booking = await scene.payer.holds(scene.show_id, *SEATS)
    answer = await scene.payer.pays(booking, method, waits=False)
    assert answer.status_code == 202, answer.text
    return booking


async def _watched(scene: Scene) -> str:
    """The gateway was silent for too long: the booking has expired, and the money may still come."""
    booking = await _waiting(scene, "tok_stuck")
    await scene.deadline(booking, ago_s=3600)
    await scene.becomes(booking, "expired")
    return booking
