"""The public catalogue: cities, venues, events, shows and their prices (R1, R3 to R5, R33)."""

from holdfast.catalogue.errors import BadWindow, NoSuchCity, NoSuchEvent, NoSuchHall, NoSuchShow, NoSuchVenue
from holdfast.catalogue.event import (
    City,
    Event,
    Hall,
    Kind,
    OrphanRule,
    SaleState,
    ShowOnSale,
    Times,
    Venue,
    prices_by_category,
    sale_state,
)
from holdfast.catalogue.listings import (
    cached_event_ids,
    find_events_opening_soon,
    find_trending_events,
    load_event_cards,
    load_event_page,
    load_events_page,
    load_show_rows,
    load_venue_page,
)
from holdfast.catalogue.poster import choose_palette
from holdfast.catalogue.responses import EventCard, EventPage, EventsQuery, ShowCard, VenuePage
from holdfast.catalogue.store import (
    Catalogue,
    parse_next_prices,
    parse_refund_policy,
    parse_terms,
    store_layout,
)

__all__ = [
    "BadWindow",
    "Catalogue",
    "City",
    "Event",
    "EventCard",
    "EventPage",
    "EventsQuery",
    "Hall",
    "Kind",
    "NoSuchCity",
    "NoSuchEvent",
    "NoSuchHall",
    "NoSuchShow",
    "NoSuchVenue",
    "OrphanRule",
    "SaleState",
    "ShowCard",
    "ShowOnSale",
    "Times",
    "Venue",
    "VenuePage",
    "cached_event_ids",
    "choose_palette",
    "find_events_opening_soon",
    "find_trending_events",
    "load_event_cards",
    "load_event_page",
    "load_events_page",
    "load_show_rows",
    "load_venue_page",
    "parse_next_prices",
    "parse_refund_policy",
    "parse_terms",
    "prices_by_category",
    "sale_state",
    "store_layout",
]
