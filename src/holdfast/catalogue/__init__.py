"""What can be seen, where, when and for how much (R1, R3 to R5, R33)."""

from holdfast.catalogue.cards.store import event_cards, shows_by_id
from holdfast.catalogue.event import City, Id, Kind, PostalCode, Slug, Word, poster_of
from holdfast.catalogue.layout import Area, Category, Layout, LayoutBody, LayoutProblem, Run
from holdfast.catalogue.pages import EventCard
from holdfast.catalogue.policy import Quote, RefundPolicy, RefundStep, quote
from holdfast.catalogue.pricing import Lines
from holdfast.catalogue.programme.store import Programme
from holdfast.catalogue.show import Currency, OrphanRule, PriceMinor, SaleState, ShowOnSale
from holdfast.catalogue.store import Catalogue
from holdfast.catalogue.terms import Terms

__all__ = [
    "Area",
    "Catalogue",
    "Category",
    "City",
    "Currency",
    "EventCard",
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
    "ShowOnSale",
    "Slug",
    "Terms",
    "Word",
    "event_cards",
    "poster_of",
    "quote",
    "shows_by_id",
]
