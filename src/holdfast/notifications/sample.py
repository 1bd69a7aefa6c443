"""A letter about a show that there is not, for whoever wants to see what people get. No I/O."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from holdfast.notifications.message import Contents, Letter, SeatName, Stationery, Stub, html_of, letter_of
from holdfast.notifications.notice import Kind
from holdfast.tickets import Occasion, Printed, Standing, png

STARTS_AT = datetime(2027, 5, 14, 14, 0, tzinfo=UTC)
SEATS = (SeatName("Stalls", "J", "12"), SeatName("Stalls", "J", "13"))
SAMPLE = Contents(
    name="Zoë Kumar",
    title="Crème Brûlée",
    where=("Hall 1", "Lotus Palace", "12 Marine Drive", "Mumbai"),
    starts_at=STARTS_AT,
    zone=timezone(timedelta(hours=5, minutes=30), "Asia/Kolkata"),
    reference="ABCD2345",
    seats=SEATS,
    amount_minor=125_000,
    currency="INR",
    until=STARTS_AT - timedelta(days=9),
    minutes=3,
    reason="Insufficient funds.",
    at=STARTS_AT - timedelta(days=7),
    starts_before=STARTS_AT - timedelta(hours=1),
    other="bob@example.org",
    base="",
    booking_path="/bookings/sample",
    show_path="/shows/0",
)
OCCASION = Occasion(
    show_id=0,
    title=SAMPLE.title,
    hall="Hall 1",
    venue="Lotus Palace",
    address="12 Marine Drive",
    city="Mumbai",
    starts_at=STARTS_AT,
    ends_at=STARTS_AT + timedelta(hours=2),
    starts_local=STARTS_AT.astimezone(SAMPLE.zone),
    timezone="Asia/Kolkata",
    cancelled=False,
    revision=1,
)
TICKET = Printed(
    ticket_id="",
    reference=SAMPLE.reference,
    seat="J-12",
    section="Stalls",
    row="J",
    seat_number="12",
    category="Gold",
    trait="n",
    price="",
    worth=Standing.GOOD,
    code="a sample: it opens no door",
)


def sample_letter(kind: Kind, locale: str, stationery: Stationery) -> Letter:
    from babel.dates import get_timezone  # as in money.py: whoever writes no letters does without it

    picture = png("a sample: it opens no door")
    seats = SEATS[:1] if kind in (Kind.TICKET_GIVEN, Kind.TICKET_GOT) else SEATS
    has_tickets = kind in (Kind.TICKETS, Kind.TICKET_GOT)
    stubs = [Stub(seat=seat, picture=picture, link="/tickets/") for seat in seats] if has_tickets else []
    contents = replace(SAMPLE, seats=seats, stubs=stubs, zone=get_timezone(OCCASION.timezone))
    return letter_of(kind, contents, locale, stationery)


def sample_html(letter: Letter, stationery: Stationery) -> str:
    return html_of(letter, stationery, [picture_url(stub.picture or b"") for _, stub in letter.stubs])


def picture_url(picture: bytes) -> str:
    return "data:image/png;base64," + b64encode(picture).decode()
