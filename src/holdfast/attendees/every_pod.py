"""Bookings of an organiser's shows that are in several databases: answers of all pods are merged."""

from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from holdfast.attendees.page import PAGE_MAX, BookingFilter, BookingQuery, FoundBooking, FoundBookings
from holdfast.bookings import from_public_id
from holdfast.engines.errors import EngineDown
from holdfast.web.every_pod import ask_every_pod, cut_page, drop_copies, require_every_pod

if TYPE_CHECKING:
    from holdfast.app import App


async def search_bookings(app: "App", organiser_id: int | None, wanted: BookingQuery) -> FoundBookings:
    if wanted.show is not None:
        return await app.router.for_show(wanted.show).attendees.search(organiser_id, wanted)
    answers = await ask_every_pod(app, lambda each: each.attendees.search(organiser_id, wanted))
    if len(answers.found) == 1 and answers.is_complete:
        return answers.values[0]
    found = _newest_first(one for page in answers.values for one in page.bookings)
    shown = cut_page(found, wanted.size, _number)
    more = len(found) > len(shown) or any(page.next for page in answers.values)
    last = shown[-1].booking_id if more else None
    return FoundBookings(shown, last, complete=answers.is_complete, missing_pods=answers.away)


async def export_bookings(
    app: "App", organiser_id: int | None, wanted: BookingFilter
) -> AsyncIterator[bytes]:
    """A sheet has everything: it is refused while a pod cannot be reached."""
    if wanted.show is not None:
        return await app.router.for_show(wanted.show).attendees.export_bookings(organiser_id, wanted)
    if not app.router.has_pods:
        return await app.attendees.export_bookings(organiser_id, wanted)

    async def load(before: int) -> list[FoundBooking]:
        answers = await ask_every_pod(app, lambda each: each.attendees.page(organiser_id, wanted, before))
        if answers.away:
            raise EngineDown("ledger")
        return cut_page(_newest_first(one for page in answers.values for one in page), PAGE_MAX, _number)

    await require_every_pod(app)
    return await app.attendees.export_bookings(organiser_id, wanted, load)


def _newest_first(found: Iterable[FoundBooking]) -> list[FoundBooking]:
    """By number, as every pod has them. Numbers begin with the time (bookings/functions.sql)."""
    return sorted(drop_copies(found, lambda one: one.booking_id), key=_number, reverse=True)


def _number(found: FoundBooking) -> int:
    return from_public_id(found.booking_id)[1]
