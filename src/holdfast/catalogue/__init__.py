"""What can be seen, where, when and for how much (R1, R3 to R5, R33)."""

from holdfast.catalogue.cards.store import event_cards, shows_by_id
from holdfast.catalogue.event import City, Id, Kind, PostalCode, Slug, Word, poster_of
from holdfast.catalogue.kept.store import kept_page, ready_page
from holdfast.catalogue.layout import Area, Category, Layout, LayoutBody, LayoutProblem, Run
from holdfast.catalogue.pages import Asked, EventCard, EventPage, ShowCard, VenuePage
from holdfast.catalogue.policy import Quote, RefundPolicy, RefundStep, quote
from holdfast.catalogue.poster import ink_of, poster
from holdfast.catalogue.pricing import Lines
from holdfast.catalogue.programme.store import Programme
from holdfast.catalogue.show import (
    Coming,
    Currency,
    OrphanRule,
    PriceMinor,
    SaleState,
    ShowOnSale,
    sale_state,
)
from holdfast.catalogue.store import Catalogue
from holdfast.catalogue.terms import Terms
from holdfast.catalogue.told.store import (
    chosen_slowly,
    event_told,
    events_opening,
    events_page,
    venue_told,
)

__all__ = [
    "Area",
    "Asked",
    "Catalogue",
    "Category",
    "City",
    "Coming",
    "Currency",
    "EventCard",
    "EventPage",
    "Id",
    "Kind",
    "Layout",
    "LayoutBody",
    "LayoutProblem",
    "Lines",
    "OrphanRule",
    "PostalCode",
    "PriceMinor",
    "Programme",
    "Quote",
    "RefundPolicy",
    "RefundStep",
    "Run",
    "SaleState",
    "ShowCard",
    "ShowOnSale",
    "Slug",
    "Terms",
    "VenuePage",
    "Word",
    "chosen_slowly",
    "event_cards",
    "event_told",
    "events_opening",
    "events_page",
    "ink_of",
    "kept_page",
    "poster",
    "poster_of",
    "quote",
    "ready_page",
    "sale_state",
    "shows_by_id",
    "venue_told",
]
