"""What can be seen, where, when and for how much (R1, R3 to R5, R33)."""

from holdfast.catalogue.layout import Area, Category, Layout, LayoutBody, LayoutProblem, Run
from holdfast.catalogue.policy import Quote, RefundPolicy, RefundStep, quote
from holdfast.catalogue.pricing import Lines
from holdfast.catalogue.show import OrphanRule, SaleState, ShowOnSale
from holdfast.catalogue.store import Catalogue
from holdfast.catalogue.terms import Terms

__all__ = [
    "Area",
    "Catalogue",
    "Category",
    "Layout",
    "LayoutBody",
    "LayoutProblem",
    "Lines",
    "OrphanRule",
    "Quote",
    "RefundPolicy",
    "RefundStep",
    "Run",
    "SaleState",
    "ShowOnSale",
    "Terms",
    "quote",
]
