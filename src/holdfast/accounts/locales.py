"""The locale of a reader: language, and how their region writes dates, times and money. No I/O."""

import re
from collections.abc import Mapping
from functools import lru_cache

from holdfast.accounts.account import LANGUAGES, choose_language

LANGUAGE_COOKIE = "holdfast_language"
LOCALES_CACHED_MAX = 1024  # most browsers of a country send the same header
ACCEPT_LANGUAGE_BYTES_MAX = 256  # bounds the locale cache key
CHOSEN = re.compile(rb"(?:^|; *)" + LANGUAGE_COOKIE.encode() + rb"=([a-z]{2})(?:;|$)")

# How a language writes numbers, money and dates; the first is the default region.
LOCALES = {
    "en": ("en_GB", "en_US", "en_IN", "en_AU", "en_CA", "en_IE"),
    "de": ("de_DE", "de_AT", "de_CH"),
    "hi": ("hi_IN",),
}


@lru_cache(LOCALES_CACHED_MAX)
def choose_locale(language: str | None, accept_language: str | None) -> str:
    """The locale of a page: of the chosen language, else of the browser's preference."""
    chosen = language if language in LANGUAGES else choose_language(accept_language)
    regions = LOCALES[chosen]
    for preference in (accept_language or "").split(",")[:10]:
        name = preference.partition(";")[0].strip().replace("-", "_")
        if name in regions:
            return name
    return regions[0]


def locale_for(headers: Mapping[bytes, bytes]) -> str:
    """From the headers of a request: the language chosen on our pages, else the browser's preference."""
    found = CHOSEN.search(headers.get(b"cookie", b""))
    wish = headers.get(b"accept-language", b"")[:ACCEPT_LANGUAGE_BYTES_MAX]
    return choose_locale(found[1].decode() if found else None, wish.decode("latin-1"))
