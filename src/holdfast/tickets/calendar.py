"""Tickets as a calendar entry (RFC 5545). No I/O.

The UID is the booking's and never changes; SEQUENCE is the show's revision, so that a calendar that reads the
file again moves the entry instead of adding one, and strikes it out when the show is off.
"""

from datetime import datetime, timedelta

from holdfast.bookings import public_id, reference
from holdfast.tickets.issued import TicketShow
from holdfast.tickets.texts import TicketTexts

REMIND_BEFORE = timedelta(hours=3)


def calendar_file(
    occasion: TicketShow, number: int, seats: list[str], texts: TicketTexts, *, is_off: bool, now: datetime
) -> bytes:
    """`number`: of the booking. `is_off`: the show was cancelled, or every ticket given back."""
    # Here, not above: a sixth of a second and 10 MB that a process which only sells does not need.
    from icalendar import Alarm, Calendar, Event

    entry = Event()
    entry.add("uid", f"{public_id(occasion.show_id, number)}@holdfast")
    entry.add("dtstamp", now)
    entry.add("sequence", occasion.revision + (1 if is_off else 0))
    entry.add("summary", occasion.title)
    entry.add("dtstart", occasion.starts_at)
    entry.add("dtend", occasion.ends_at)
    where = [occasion.hall, occasion.venue, occasion.address, occasion.city]
    entry.add("location", ", ".join(part for part in where if part))
    booked = f"{texts['booking']}: {reference(occasion.show_id, number)}"
    entry.add("description", f"{texts['seats']}: {', '.join(seats)}\n{booked}")
    entry.add("status", "CANCELLED" if is_off else "CONFIRMED")
    if not is_off:
        alarm = Alarm()
        alarm.add("action", "DISPLAY")
        alarm.add("description", occasion.title)
        alarm.add("trigger", -REMIND_BEFORE)
        entry.add_component(alarm)
    calendar = Calendar()
    calendar.add("prodid", "-//Holdfast//Tickets//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    calendar.add("method", "CANCEL" if is_off else "PUBLISH")
    calendar.add_component(entry)
    return bytes(calendar.to_ical())
