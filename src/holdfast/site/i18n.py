"""Texts, money, dates and times in the reader's language and region. No I/O.

Texts come from gettext catalogues. A message id is a stable key (`checkout.pay`), so that rewording the
English text leaves every translation valid; placeholders in braces are filled in. A message with plural forms
takes `count`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, cached_property, lru_cache
from gettext import c2py
from io import BytesIO
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from holdfast.money import to_major

FORMATTED_MAX = 4096  # cached values per formatter, about 100 bytes each
CLDR_PLURALS = ("zero", "one", "two", "few", "many", "other")  # the order of the forms in a catalogue
Text = str | tuple[str, ...]  # a tuple: plural forms, in the order of the catalogue's rule


@dataclass(frozen=True, slots=True)
class MessageCatalogue:
    """The texts of one language by message id."""

    texts: Mapping[str, Text]
    plural_index: Callable[[int], int]  # the catalogue's Plural-Forms rule: which form fits a number


class ParsedCatalogue(msgspec.Struct, frozen=True):
    """A .po file, in a form that is read again in a millisecond."""

    plural_expr: str
    texts: dict[str, Text]

    def build(self) -> MessageCatalogue:
        return MessageCatalogue(self.texts, c2py(self.plural_expr))


def parse_catalogue(content: bytes) -> ParsedCatalogue:
    """Reads a .po file: some 30 ms."""
    from babel.messages.pofile import read_po

    messages = read_po(BytesIO(content))
    texts: dict[str, Text] = {}
    for message in messages:
        match message.id, message.string:
            case "", _:
                continue  # the header
            case str(key), str(text):
                texts[key] = text
            case (str(key), *_), (list() | tuple()) as forms:
                texts[key] = tuple(forms)
    return ParsedCatalogue(messages.plural_expr, texts)


class Localiser:
    """Writes texts, numbers, money, dates and times for one locale."""

    def __init__(self, locale: str, catalogue: MessageCatalogue) -> None:
        self.locale = locale
        self.language = locale.partition("_")[0]
        self._catalogue = catalogue
        self._texts = catalogue.texts
        # A page repeats the same days and prices, and Babel needs up to a millisecond for one.
        self.number, self.money = (
            lru_cache(FORMATTED_MAX)(self._number),
            lru_cache(FORMATTED_MAX)(self._money),
        )
        self.day, self.time = lru_cache(FORMATTED_MAX)(self._day), lru_cache(FORMATTED_MAX)(self._time)
        self.zone = lru_cache(FORMATTED_MAX)(self._zone)

    def t(self, message_id: str, /, **values: object) -> str:
        """The text of this id, with its placeholders filled in. An unknown id is a programming error."""
        text = self._texts[message_id]
        if not isinstance(text, str):
            count = values["count"]
            assert isinstance(count, int), message_id
            text = text[self._catalogue.plural_index(count)]
            values = {**values, "count": self.number(count)}
        return text.format_map(values) if values else text

    def has(self, message_id: str) -> bool:
        return message_id in self._texts

    def texts_for_scripts(self, prefix: str) -> dict[str, str | dict[str, str]]:
        """Texts whose ids begin with `prefix`, without it; plural forms by their CLDR names, for scripts."""
        tags = self._babel.plural_form.tags | {"other"}
        categories = [name for name in CLDR_PLURALS if name in tags]
        return {
            message_id.removeprefix(prefix): text
            if isinstance(text, str)
            else dict(zip(categories, text, strict=True))
            for message_id, text in self._texts.items()
            if message_id.startswith(prefix)
        }

    def _number(self, value: int | float) -> str:
        from babel.numbers import format_decimal

        return format_decimal(value, locale=self._babel)

    def _money(self, amount_minor: int, currency: str) -> str:
        """€15, €15.50: a whole amount has no decimals."""
        from babel.numbers import format_currency

        amount = to_major(amount_minor, currency)
        if amount == amount.to_integral_value():
            pattern = self._babel.currency_formats["standard"].pattern.replace(".00", "")
            return format_currency(amount, currency, pattern, locale=self._babel, currency_digits=False)
        return format_currency(amount, currency, locale=self._babel, decimal_quantization=False)

    def price(self, amount_minor: int, currency: str) -> str:
        """What something costs: Free, €15."""
        return self.money(amount_minor, currency) if amount_minor else self.t("shell.free")

    def _day(self, when: date | datetime, zone: str = "UTC", style: str = "") -> str:
        """Friday, 20 November; or as a CLDR skeleton says: `MMMEd` is Fri, 20 Nov."""
        from babel.dates import format_date, format_skeleton

        at = when.astimezone(ZoneInfo(zone)) if isinstance(when, datetime) else when
        if style:
            return format_skeleton(style, at, locale=self._babel)
        # CLDR has no long form without the year for some languages; all have a short one, which is widened.
        short = self._babel.datetime_skeletons["MMMEd"].pattern
        return format_date(at, re.sub("M+", "MMMM", re.sub("E+", "EEEE", short)), locale=self._babel)

    def _time(self, when: datetime, zone: str) -> str:
        """19:30 or 7:30 pm, by region."""
        from babel.dates import format_time

        return format_time(when.astimezone(ZoneInfo(zone)), "short", locale=self._babel)

    def clock(self, when: datetime, zone: str) -> str:
        """19:30:07 or 7:30:07 pm, by region."""
        from babel.dates import format_time

        return format_time(when.astimezone(ZoneInfo(zone)), "medium", locale=self._babel)

    def _zone(self, when: datetime, zone: str) -> str:
        """The zone's short name: IST, CET; +05 where it has none."""
        return when.astimezone(ZoneInfo(zone)).strftime("%Z")

    @cached_property
    def _babel(self) -> Any:
        from babel.core import Locale

        return Locale.parse(self.locale)


def language_name(written: str, locale: str) -> str:
    """A film's language as the catalogue has it in English, in the reader's own; else as it is written."""
    code = _codes().get(written.casefold())
    return _parsed(locale).languages.get(code, written) if code else written.capitalize()


def country_name(code: str, locale: str) -> str:
    return str(_parsed(locale).territories.get(code, code))


# Countries that write the postal code after the city: London SE1 9PD, but 10115 Berlin.
POSTAL_CODE_LAST = {
    "AU",
    "BD",
    "CA",
    "GB",
    "GG",
    "HK",
    "IE",
    "IM",
    "IN",
    "JE",
    "JP",
    "LK",
    "MT",
    "NG",
    "NZ",
    "PK",
    "SG",
    "TH",
    "TW",
    "US",
    "ZA",
}


def format_address(street: str, postal_code: str, city: str, country: str) -> str:
    """On one line, in the order of the venue's country, whatever the reader's language."""
    town = (city, postal_code) if country in POSTAL_CODE_LAST else (postal_code, city)
    return ", ".join(filter(None, (street, " ".join(filter(None, town)))))


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
