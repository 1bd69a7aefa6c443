"""Terms, privacy policy, imprint and refund policy with versions, and consent to them."""

from holdfast.legal.errors import NoSuchText, TermsChanged
from holdfast.legal.store import Legal
from holdfast.legal.text import (
    HOUSE,
    NO_TERMS,
    VERSION_BYTES_MAX,
    Agreed,
    LegalBody,
    LegalKind,
    LegalPage,
    LegalText,
    TermsInForce,
    TextBlock,
    choose_text,
    parse_blocks,
    parse_kind,
)

__all__ = [
    "HOUSE",
    "NO_TERMS",
    "VERSION_BYTES_MAX",
    "Agreed",
    "Legal",
    "LegalBody",
    "LegalKind",
    "LegalPage",
    "LegalText",
    "NoSuchText",
    "TermsChanged",
    "TermsInForce",
    "TextBlock",
    "choose_text",
    "parse_blocks",
    "parse_kind",
]
