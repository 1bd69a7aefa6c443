"""The search form of /find, and links to the same search with one change. No I/O.

Empty fields and unknown parameters are ignored. `city=` without a value means all cities, even if the reader
has chosen one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import urlencode

from holdfast.search import Q_LETTERS_MAX, EventSearchQuery, SearchPage, Sort
from holdfast.site.i18n import Localiser, genre_name, language_name

SIZE = 12
PAGES_MAX = 1000 // SIZE  # search leads to its first thousand by number
OPTIONS_MAX = 12
DAYS_MAX = 21
FIELDS = tuple(name for name in EventSearchQuery.__struct_fields__ if name not in ("cursor", "size"))
PLACES = ("venue", "near", "postal_code")  # who names one of them does not mean the chosen city
EXPLAINED = ("date_from", "date_to", "postal_code", "page")  # fields whose mistakes have their own sentence
SORTS = (Sort.SHOWTIME, Sort.POPULARITY, Sort.RATING, Sort.PRICE)


@dataclass(frozen=True, slots=True)
class Option:
    label: str
    href: str
    events: int | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class Facet:
    name: str
    options: list[Option]
    more: int = 0  # options that are left out


class SearchForm:
    """`given` is what is searched for; `typed` also has the fields with a mistake, as they were typed."""

    def __init__(
        self, given: Mapping[str, str], chosen_city: str | None, mistakes: Mapping[str, str] | None = None
    ) -> None:
        self._chosen_city = chosen_city
        known = {name: text.strip() for name, text in given.items() if name in FIELDS}
        self.mistakes = dict(mistakes or {})  # by field: a code, of which the page makes a sentence
        self.typed = {name: text for name, text in known.items() if text}
        known = {name: text for name, text in known.items() if name not in self.mistakes}
        if "q" in known:
            known["q"] = known["q"][:Q_LETTERS_MAX]
        is_anywhere = known.get("city") == ""
        self.given = {name: text for name, text in known.items() if text}
        self.is_city_from_before = False
        if is_anywhere:
            self.given["city"] = ""
        elif chosen_city and not any(name in self.given for name in ("city", *PLACES)):
            self.given["city"] = chosen_city
            self.is_city_from_before = True

    def without(self, field: str) -> "SearchForm":
        """The same search without a field that has a mistake."""
        is_order = field == "date_to" and _is_date(self.typed.get("date_to", ""))
        code = "date_order" if is_order else {"date_from": "date", "date_to": "date"}.get(field, field)
        mistakes = {**self.mistakes, field: code if field in EXPLAINED else "link"}
        if is_order:
            mistakes["date_from"] = "date_unused"  # which of the two is wrong is unknown
        if field in PLACES and self.given.get("sort") == Sort.DISTANCE:
            mistakes["sort"] = mistakes[field]  # without a place there are no distances
        return SearchForm(
            self.typed | ({"city": ""} if self.is_anywhere else {}), self._chosen_city, mistakes
        )

    @property
    def is_anywhere(self) -> bool:
        return self.given.get("city") == ""

    @property
    def fields(self) -> dict[str, str]:
        """The parameters of the search."""
        return {name: text for name, text in self.given.items() if text} | {"size": str(SIZE)}

    @property
    def key(self) -> tuple[tuple[str, str], ...]:
        mistaken = [(name, self.typed.get(name, "")) for name in self.mistakes]
        return (*sorted(self.given.items()), *sorted(mistaken))

    def elsewhere(self) -> "SearchForm":
        """The same, anywhere."""
        return SearchForm({**self.typed, "city": ""}, None, self.mistakes)

    def link(self, **changes: object) -> str:
        """This search with changes; None takes a wish away. Another search begins at its first page."""
        wanted: dict[str, object] = {"page": None, **changes}
        fields = {name: wanted.get(name, self.given.get(name)) for name in FIELDS}
        pairs = [(name, str(value)) for name, value in fields.items() if value is not None]
        return f"/find?{urlencode(pairs)}" if pairs else "/find"

    @property
    def here(self) -> str:
        return self.link(page=self.given.get("page"))

    def chips(self, names: Mapping[str, str], l10n: Localiser) -> list[Option]:
        """Every wish with a link that takes it away."""
        t, given = l10n.t, self.given
        filters: list[tuple[str, dict[str, object]]] = []
        if city := given.get("city"):
            filters.append((names.get(city, city), {"city": ""}))
        if kind := given.get("kind"):
            filters.append((t(f"browse.kinds_{kind}"), {"kind": None}))
        if language := given.get("language"):
            filters.append((language_name(language, l10n.locale), {"language": None}))
        if genre := given.get("genre"):
            filters.append((genre_name(genre, l10n), {"genre": None}))
        if dates := self._dates(l10n):
            filters.append((dates, {"date_from": None, "date_to": None}))
        if self.price_max is not None:
            gone: dict[str, object] = {"price_max_minor": None, "price_min_minor": None, "currency": None}
            filters.append((t("browse.up_to", price=l10n.money(*self.price_max)), gone))
        for name in ("only_available", "accessible"):
            if given.get(name) == "true":
                filters.append((t(f"browse.{name}"), {name: None}))
        if code := given.get("postal_code"):
            filters.append((code, {"postal_code": None, "sort": None}))
        if "near" in given:
            filters.append((t("browse.near_you"), {"near": None, "sort": None}))
        if "venue" in given:
            filters.append((t("browse.one_venue"), {"venue": None}))
        return [Option(label, self.link(**change)) for label, change in filters]

    @property
    def price_max(self) -> tuple[int, str] | None:
        price, currency = self.given.get("price_max_minor"), self.given.get("currency")
        return (int(price), currency) if price and currency else None

    def _dates(self, l10n: Localiser) -> str:
        first, last = self.given.get("date_from"), self.given.get("date_to")
        days = [l10n.day(date.fromisoformat(day), style="MMMEd") for day in (first, last) if day]
        if first and last:
            return days[0] if first == last else l10n.t("browse.from_to", first=days[0], last=days[1])
        name = "browse.from_day" if first else "browse.until_day"
        return l10n.t(name, day=days[0]) if days else ""

    def sorts(self, sort: str, l10n: Localiser) -> list[Option]:
        offered = [*SORTS]
        if self.given.get("q"):
            offered.insert(0, Sort.RELEVANCE)
        if {"near", "postal_code"} & self.given.keys():
            offered.insert(0, Sort.DISTANCE)
        return [
            Option(l10n.t(f"browse.sort_{each}"), self.link(sort=each), None, each == sort)
            for each in offered
        ]

    def days(self, page: SearchPage) -> list[tuple[date, Option]]:
        """Days on which something is on, in a row."""
        chosen = self.given.get("date_from")
        is_one = chosen is not None and chosen == self.given.get("date_to")
        return [
            (
                each.date,
                Option(
                    "",
                    self.link(date_from=each.date, date_to=each.date),
                    each.events,
                    is_one and each.date.isoformat() == chosen,
                ),
            )
            for each in (page.facets.date[:DAYS_MAX] if page.facets else [])
        ]

    def facets(self, page: SearchPage, l10n: Localiser) -> list[Facet]:
        """What one may narrow it by. A facet with nothing to choose is left out."""
        if page.facets is None:
            return []
        found = [
            self._facet("kind", page.facets.kind, lambda name: l10n.t(f"browse.kinds_{name}")),
            self._facet("city", page.facets.city, str),
            self._facet("language", page.facets.language, lambda name: language_name(name, l10n.locale)),
            self._facet("genre", page.facets.genre, lambda name: genre_name(name, l10n)),
            self._prices(page, l10n),
        ]
        return [facet for facet in found if len(facet.options) > 1 or any(o.is_chosen for o in facet.options)]

    def _facet(self, name: str, counts: Sequence[Any], label: Callable[[str], str]) -> Facet:
        chosen = (self.given.get(name) or "").casefold()
        options = [
            Option(
                label(count.name),
                self.link(**{name: None if count.value == chosen and name != "city" else count.value}),
                count.events,
                count.value == chosen,
            )
            for count in counts
        ]
        return Facet(name, options[:OPTIONS_MAX], max(0, len(options) - OPTIONS_MAX))

    def _prices(self, page: SearchPage, l10n: Localiser) -> Facet:
        """Up to so much, each with all that is cheaper; in one currency, the most usual here."""
        assert page.facets is not None
        counted: dict[str, int] = {}
        for each in page.facets.price:
            counted[each.currency] = counted.get(each.currency, 0) + each.events
        wanted = self.given.get("currency")
        currency = wanted or max(counted, key=lambda one: counted[one], default="")
        options, so_far = [], 0
        for each in page.facets.price:
            if each.currency != currency or each.price_max_minor is None:
                continue
            so_far += each.events
            most = each.price_max_minor + 1 if each.price_max_minor else 0
            label = l10n.t("browse.up_to", price=l10n.money(most, currency)) if most else ""
            link = self.link(price_min_minor=None, price_max_minor=most, currency=currency)
            is_chosen = self.given.get("price_max_minor") == str(most)
            options.append(Option(label or l10n.t("browse.free"), link, so_far, is_chosen))
        return Facet("price", options[:OPTIONS_MAX])


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
