"""Prices: their parts, rules that move them, and refund policies."""

from holdfast.pricing.errors import (
    BadPriceRules,
    FeeTooHigh,
    PricedByRules,
    UnknownCategory,
    UnpricedCategory,
)
from holdfast.pricing.preview import PricingSnapshot, RulesPreview, list_floors, preview_rules
from holdfast.pricing.rules import (
    NextPrice,
    PriceRules,
    check_price_rules,
    find_next_price,
    list_step_instants,
    price_at,
)
from holdfast.pricing.terms import (
    DEFAULT_REFUND_POLICY,
    DEFAULT_TERMS,
    BasisPoints,
    CardSeats,
    FeeMinor,
    PolicyQuote,
    PriceLines,
    RefundPolicy,
    RefundStep,
    RefundTerms,
    Terms,
    build_refund_terms,
    quote_refund,
)

__all__ = [
    "DEFAULT_REFUND_POLICY",
    "DEFAULT_TERMS",
    "BadPriceRules",
    "BasisPoints",
    "CardSeats",
    "FeeMinor",
    "FeeTooHigh",
    "NextPrice",
    "PolicyQuote",
    "PriceLines",
    "PriceRules",
    "PricedByRules",
    "PricingSnapshot",
    "RefundPolicy",
    "RefundStep",
    "RefundTerms",
    "RulesPreview",
    "Terms",
    "UnknownCategory",
    "UnpricedCategory",
    "build_refund_terms",
    "check_price_rules",
    "find_next_price",
    "list_floors",
    "list_step_instants",
    "preview_rules",
    "price_at",
    "quote_refund",
]
