"""What can be seen, where, when and for how much (R1, R3 to R5, R33)."""

from holdfast.catalogue.errors import BadWindow, NoSuchCity, NoSuchEvent, NoSuchHall, NoSuchShow, NoSuchVenue
from holdfast.catalogue.event import City, Event, Hall, Kind, Venue
from holdfast.catalogue.listings import (
    chosen_slowly,
    event_cards,
    event_told,
    events_opening,
    events_page,
    shows_by_id,
    venue_told,
)
from holdfast.catalogue.poster import ink_of
from holdfast.catalogue.responses import Asked, EventCard, EventPage, ShowCard, VenuePage
from holdfast.catalogue.show import OrphanRule, SaleState, ShowOnSale, Times, prices_by_category, sale_state
from holdfast.catalogue.store import Catalogue, moving_of, policy_of, store_layout, terms_of

__all__ = [
    "Asked",
    "BadWindow",
    "Catalogue",
    "City",
    "Event",
    "EventCard",
    "EventPage",
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
    "chosen_slowly",
    "event_cards",
    "event_told",
    "events_opening",
    "events_page",
    "ink_of",
    "moving_of",
    "policy_of",
    "prices_by_category",
    "sale_state",
    "shows_by_id",
    "store_layout",
    "terms_of",
    "venue_told",
]
