"""What languages, countries and genres are called in the reader's language. No I/O."""

from datetime import date
from functools import cache
from typing import Any

from holdfast.site.i18n import Localiser


def language_name(written: str, locale: str) -> str:
    """A film's language as the catalogue has it in English, in the reader's own; else as it is written."""
    code = _codes().get(written.casefold())
    return _parsed(locale).languages.get(code, written) if code else written.capitalize()


def country_name(code: str, locale: str) -> str:
    return str(_parsed(locale).territories.get(code, code))


def genre_name(written: str, l10n: Localiser) -> str:
    """The usual genres in the reader's language; an organiser's own word as it is written."""
    name = f"genres.{written.casefold().replace(' ', '_').replace('-', '_')}"
    return l10n.t(name) if l10n.has(name) else written[:1].upper() + written[1:]


def weekday_name(day: date, locale: str) -> str:
    """Friday, in full: no skeleton of CLDR's asks for that alone."""
    from babel.dates import format_date

    return format_date(day, "cccc", locale=_parsed(locale))


@cache
def _codes() -> dict[str, str]:
    return {name.casefold(): code for code, name in _parsed("en").languages.items()}


@cache
def _parsed(locale: str) -> Any:
    from babel.core import Locale

    return Locale.parse(locale)
