"""Sentences, money, dates and times, as a locale writes them. No I/O.

A sentence is found by a name, `home.tonight`; what is in braces is filled in. One with forms for numbers has
a form for each that its language knows (Babel says which), and `count` in it is the number, written.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import cached_property, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.money import major

KEPT_MAX = 4096  # of each sort, a hundred bytes each
Sentence = str | Mapping[str, str]
Sentences = Mapping[str, Mapping[str, Sentence]]


class Words:
    def __init__(self, locale: str, sentences: Sentences) -> None:
        self.locale = locale
        self.language = locale.partition("_")[0]
        self._sentences = sentences
        # A page says the same days and prices many times over, and Babel takes a millisecond for some.
        self.number, self.money = lru_cache(KEPT_MAX)(self._number), lru_cache(KEPT_MAX)(self._money)
        self.day, self.time = lru_cache(KEPT_MAX)(self._day), lru_cache(KEPT_MAX)(self._time)
        self.zone = lru_cache(KEPT_MAX)(self._zone)

    def say(self, name: str, /, **parts: object) -> str:
        """The sentence of this name. One that does not exist is a mistake of ours, and told as such."""
        subject, _, which = name.partition(".")
        sentence = self._sentences[subject][which]
        if not isinstance(sentence, str):
            count = parts["count"]
            assert isinstance(count, int), name
            sentence = sentence[self._babel.plural_form(count)]
            parts = {**parts, "count": self.number(count)}
        return sentence.format_map(parts) if parts else sentence

    def has(self, name: str) -> bool:
        subject, _, which = name.partition(".")
        return which in self._sentences.get(subject, {})

    def beginning_with(self, name: str) -> dict[str, Sentence]:
        """Sentences as they are written, for a script that fills them in: `seats.map_` gives all map_…"""
        subject, _, beginning = name.partition(".")
        found = self._sentences[subject].items()
        return {which: sentence for which, sentence in found if which.startswith(beginning)}

    def _number(self, value: int | float) -> str:
        from babel.numbers import format_decimal

        return format_decimal(value, locale=self._babel)

    def _money(self, amount_minor: int, currency: str) -> str:
        """As people write it; a round amount without its zeroes: €15, €15.50."""
        from babel.numbers import format_currency

        amount = major(amount_minor, currency)
        if amount == amount.to_integral_value():
            pattern = self._babel.currency_formats["standard"].pattern.replace(".00", "")
            return format_currency(amount, currency, pattern, locale=self._babel, currency_digits=False)
        return format_currency(amount, currency, locale=self._babel, decimal_quantization=False)

    def _day(self, when: date | datetime, zone: str = "UTC", style: str = "") -> str:
        """Friday, 20 November; or by a skeleton of CLDR's: `MMMEd` is Fri, 20 Nov."""
        from babel.dates import format_date, format_skeleton

        at = when.astimezone(ZoneInfo(zone)) if isinstance(when, datetime) else when
        if style:
            return format_skeleton(style, at, locale=self._babel)
        # Not every language of CLDR's has a long form without the year; all have a short one to widen.
        short = self._babel.datetime_skeletons["MMMEd"].pattern
        return format_date(at, re.sub("M+", "MMMM", re.sub("E+", "EEEE", short)), locale=self._babel)

    def _time(self, when: datetime, zone: str) -> str:
        """19:30, or 7:30 pm where people write that."""
        from babel.dates import format_time

        return format_time(when.astimezone(ZoneInfo(zone)), "short", locale=self._babel)

    def _zone(self, when: datetime, zone: str) -> str:
        """What people there call their zone: IST, CET; +05 where it has no name."""
        return when.astimezone(ZoneInfo(zone)).strftime("%Z")

    @cached_property
    def _babel(self) -> Any:
        from babel.core import Locale

        return Locale.parse(self.locale)
