"""Invented data for previews of messages."""

from datetime import UTC, datetime, timedelta, timezone

from holdfast.notifications.render import MessageData, SeatName
from holdfast.tickets import PrintedTicket, Standing, TicketShow

STARTS_AT = datetime(2027, 5, 14, 14, 0, tzinfo=UTC)
SAMPLE_SEATS = (SeatName("Stalls", "J", "12"), SeatName("Stalls", "J", "13"))
SAMPLE = MessageData(
    name="Zoë Kumar",
    title="Crème Brûlée",
    where=("Hall 1", "Lotus Palace", "12 Marine Drive", "Mumbai"),
    starts_at=STARTS_AT,
    zone=timezone(timedelta(hours=5, minutes=30), "Asia/Kolkata"),
    reference="ABCD2345",
    seats=SAMPLE_SEATS,
    amount_minor=125_000,
    currency="INR",
    until=STARTS_AT - timedelta(days=9),
    minutes=3,
    reason="Insufficient funds.",
    is_suspended=True,
    at=STARTS_AT - timedelta(days=7),
    starts_before=STARTS_AT - timedelta(hours=1),
    other="bob@example.org",
    base="",
    booking_path="/bookings/sample",
    show_path="/shows/0",
    queue_path="/shows/0/queue",
    waitlist_path="/shows/0/waitlist",
    link_path="/link/sample",
    email="zoe@example.org",
)
SAMPLE_SHOW = TicketShow(
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
SAMPLE_TICKET = PrintedTicket(
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
