"""What can be seen, where, when and for how much (R1, R3 to R5, R33)."""

from holdfast.catalogue.layout import Area, Category, Layout, LayoutBody, LayoutProblem, Run
from holdfast.catalogue.show import OrphanRule, SaleState, ShowOnSale
from holdfast.catalogue.store import Catalogue

__all__ = [
    "Area",
    "Catalogue",
    "Category",
    "Layout",
    "LayoutBody",
    "LayoutProblem",
    "OrphanRule",
    "Run",
    "SaleState",
    "ShowOnSale",
]
