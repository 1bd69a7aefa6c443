"""A buyer's bookings. Cancelling is in refunds: money may go back."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings.booking import Booking, from_public_id
from holdfast.bookings.errors import NoSuchBooking
from holdfast.bookings.view import BookingPage, RefundShown, booking_page
from holdfast.web.caller import Role
from holdfast.web.every_pod import ask_every_pod, cut_page, drop_copies
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app, get_caller

if TYPE_CHECKING:
    from holdfast.app import App

PAGE_MAX = 100
NUMBER_MAX = 2**62
routes = RouteTable(tag="sale", role=Role.FAN)


class BookingsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    before: Annotated[str, Meta(max_length=40)] = ""  # `next` of the previous page
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 20


class BookingList(Struct, frozen=True):
    bookings: list[BookingPage]
    next: str | None  # the value of `before` for the next page; null: this is the last one
    complete: bool = True  # false: a part of the box office cannot be reached, its bookings are missing here


@routes.get("/bookings", query=BookingsQuery, answers={200: BookingList}, refusals=(NoSuchBooking,))
async def list_bookings(request: Request) -> Response:
    """My bookings, newest first."""
    app, caller = get_app(request), get_caller(request)
    page = query(BookingsQuery, request)
    before = from_public_id(page.before)[1] if page.before else NUMBER_MAX
    found, complete = await _newest(app, caller.account_id, before, page.size + 1)
    shown = cut_page(found, page.size, lambda one: one[1].number)
    pages = await _load_pages(shown)
    more = len(found) > len(shown)
    bookings = BookingList(pages, pages[-1].booking_id if more else None, complete)
    return answer(200, bookings, {"Cache-Control": "no-store"})


async def _newest(
    app: "App", owner_id: int, before: int, limit: int
) -> tuple[list[tuple["App", Booking]], bool]:
    """Of every pod that can be reached, each with the application of its pod; whether that is all of them."""
    answers = await ask_every_pod(
        app, lambda each: each.bookings.bookings_of(owner_id, before=before, limit=limit)
    )
    found = drop_copies(
        ((each, booking) for each, bookings in answers.found for booking in bookings),
        lambda one: (one[1].show_id, one[1].number),
    )
    found.sort(key=lambda one: one[1].number, reverse=True)
    return found[:limit], answers.is_complete


@routes.get("/bookings/{booking}", answers={200: BookingPage}, refusals=(NoSuchBooking,))
async def get_booking(request: Request) -> Response:
    """One of my bookings."""
    show_id, number = from_public_id(request.path_params["booking"])
    app = get_app(request)
    booking = await app.bookings.load_owned(get_caller(request).account_id, show_id, number)
    (page,) = await _load_pages([(app, booking)])
    return answer(200, page, {"Cache-Control": "no-store"})


async def _load_pages(found: Sequence[tuple["App", Booking]]) -> list[BookingPage]:
    refunds: dict[tuple[int, int], Sequence[RefundShown]] = {}
    for app in {id(app): app for app, _ in found}.values():
        own = [booking for each, booking in found if each is app]
        shown = await app.refunds.shown_many(own)
        refunds |= {(b.show_id, b.number): each for b, each in zip(own, shown, strict=True)}
    pages = []
    for app, booking in found:
        show = await app.catalogue.show_on_sale(booking.show_id)
        terms = await app.catalogue.terms(show, booking.revision)
        pages.append(booking_page(booking, show, terms, refunds[booking.show_id, booking.number]))
    return pages


ROUTES = routes.all
