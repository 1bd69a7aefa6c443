"""Pricing."""

from holdfast.pricing.breakdown import Lines
from holdfast.pricing.errors import (
    BadPriceRules,
    FeeTooHigh,
    PricedByRules,
    UnknownCategory,
    UnpricedCategory,
)
from holdfast.pricing.preview import Counted, RulesPreview, floors, previewed
from holdfast.pricing.refund_policy import USUAL, Quote, RefundPolicy, RefundStep, RefundTerms, quote, told_of
from holdfast.pricing.rules import Coming, PriceRules, check, coming, instants, price_at
from holdfast.pricing.terms import PLAIN, BasisPoints, CardSeats, FeeMinor, Terms

__all__ = [
    "PLAIN",
    "USUAL",
    "BadPriceRules",
    "BasisPoints",
    "CardSeats",
    "Coming",
    "Counted",
    "FeeMinor",
    "FeeTooHigh",
    "Lines",
    "PriceRules",
    "PricedByRules",
    "Quote",
    "RefundPolicy",
    "RefundStep",
    "RefundTerms",
    "RulesPreview",
    "Terms",
    "UnknownCategory",
    "UnpricedCategory",
    "check",
    "coming",
    "floors",
    "instants",
    "previewed",
    "price_at",
    "quote",
    "told_of",
]
