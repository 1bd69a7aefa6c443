"""Reads the texts of tickets: texts/<language>.toml, once per locale."""

import tomllib
from functools import lru_cache
from importlib import resources

from holdfast.tickets.texts import DEFAULT_LOCALE, TicketTexts

LOCALES_MAX = 32


@lru_cache(LOCALES_MAX)
def texts_for(locale: str = DEFAULT_LOCALE) -> TicketTexts:
    """`locale`: de, or de_AT."""
    file = resources.files("holdfast.tickets") / "texts" / f"{locale.partition('_')[0]}.toml"
    return TicketTexts(locale, tomllib.loads(file.read_text(encoding="utf-8")))
