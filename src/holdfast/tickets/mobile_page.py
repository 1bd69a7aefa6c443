"""A ticket's own page: one file that needs nothing else, so that it works without a network once opened. No
No I/O.
I/O.

Everything somebody typed is escaped. The style is in the page and named by its hash in the policy, the code
is an SVG in the page; the script (a live code, keeping the page offline) is the only thing beside it.
"""

import html
from base64 import b64encode
from hashlib import sha256
from string import Template

from holdfast.tickets.issued import Codes, Occasion, Printed, Standing
from holdfast.tickets.qr import svg

TIPS = {
    Standing.GOOD: "Turn your screen's brightness up at the door.",
    Standing.INSIDE: "Somebody is inside with this ticket.",
    Standing.USED: "This ticket was used.",
    Standing.VOID: "This ticket was given back and opens no door.",
    Standing.GIVEN_AWAY: "This ticket was given away.",
}
LIVE = "This code changes every half minute. A picture of it is worth nothing."


def policy(style: str) -> str:
    """No script or style but ours, no picture from elsewhere, no frame around us."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return "; ".join(
        (
            "default-src 'none'",
            "script-src 'self'",
            f"style-src 'sha256-{digest}'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def ticket_html(shell: Template, style: str, occasion: Occasion, ticket: Printed, codes: Codes) -> str:
    is_live = codes is not Codes.FIXED and ticket.worth is Standing.GOOD
    notes = ["The show was cancelled."] if occasion.cancelled else []
    notes += [LIVE] if is_live else []
    notes += [TIPS[ticket.worth]]
    where = " · ".join(part for part in (occasion.hall, occasion.venue) if part)
    place = ", ".join(part for part in (occasion.address, occasion.city) if part)
    seat = f"Row {ticket.row}, seat {ticket.seat_number}" if ticket.row else f"Place {ticket.seat_number}"
    texts = {
        "title": occasion.title,
        "when": occasion.when,
        "timezone": occasion.timezone,
        "starts_at": occasion.starts_at.isoformat(),
        "where": where,
        "place": place,
        "section": ticket.section,
        "seat": seat,
        "category": ticket.category,
        "reference": ticket.reference,
        "standing": ticket.worth,
        "live": "live" if is_live else "fixed",
        "note": " ".join(notes),
    }
    escaped = {name: html.escape(str(text)) for name, text in texts.items()}
    drawn = svg(ticket.code) if ticket.code is not None else ""
    return shell.substitute(escaped, style=style, qr=drawn)
