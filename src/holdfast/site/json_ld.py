"""What search engines and messengers read of an event: schema.org as JSON-LD. No I/O."""

from collections.abc import Sequence
from typing import Any

from holdfast.catalogue import EventPage, Kind, SaleState, ShowCard
from holdfast.money import to_major

SHOWS_LINKED_MAX = 20
TYPE_OF = {Kind.FILM: "ScreeningEvent", Kind.CONCERT: "MusicEvent", Kind.MATCH: "SportsEvent"}
AVAILABLE = {
    SaleState.UPCOMING: "PreOrder",
    SaleState.ON_SALE: "InStock",
    SaleState.SOLD_OUT: "SoldOut",
    SaleState.CANCELLED: "Discontinued",
    SaleState.PAST: "Discontinued",
}


def linked(event: EventPage, shows: Sequence[ShowCard], home: str) -> dict[str, Any]:
    """`home` is where people reach us, without a slash at its end."""
    return {
        "@context": "https://schema.org",
        "@graph": [_show(event, show, home) for show in shows[:SHOWS_LINKED_MAX]],
    }


def _show(event: EventPage, show: ShowCard, home: str) -> dict[str, Any]:
    is_off = show.sale_state is SaleState.CANCELLED
    told: dict[str, Any] = {
        "@type": TYPE_OF[event.kind],
        "name": event.title,
        "description": event.description,
        "image": [f"{home}/posters/{event.id}.svg"],
        "url": f"{home}/shows/{show.show_id}",
        "startDate": show.starts_at.isoformat(),
        "endDate": show.ends_at.isoformat(),
        "eventStatus": f"https://schema.org/{'EventCancelled' if is_off else 'EventScheduled'}",
        "eventAttendanceMode": "https://schema.org/OfflineEventAttendanceMode",
        "location": {"@type": "Place", "name": show.venue, "url": f"{home}/venues/{show.venue_id}"},
        "offers": {
            "@type": "Offer",
            "url": f"{home}/shows/{show.show_id}",
            "price": str(to_major(show.from_price_minor, show.currency)),
            "priceCurrency": show.currency,
            "availability": f"https://schema.org/{AVAILABLE[show.sale_state]}",
            "validFrom": show.opens_at.isoformat(),
        },
    }
    if event.kind is Kind.FILM:
        told["workPresented"] = {"@type": "Movie", "name": event.title}
    if event.people:
        told["performer"] = [{"@type": "Person", "name": name} for name in event.people]
    return told
