"""Every text exists in every language, with the same placeholders and all plural forms."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Formatter
from typing import ClassVar

import pytest
from babel.core import Locale

from holdfast.accounts import LANGUAGES, LOCALES, choose_locale
from holdfast.site.cookies import is_same_origin, parse_cookies, safe_path, set_cookie
from holdfast.site.i18n import CLDR_PLURALS, Text, parse_catalogue
from holdfast.site.templates_env import catalogue_for, load_catalogue, localiser_for

OTHERS = [language for language in LANGUAGES if language != "en"]
NUMBERS = range(1001)


def texts_of(language: str) -> Mapping[str, Text]:
    return catalogue_for(language).texts


def forms_of(text: Text) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else text


def placeholders(text: Text) -> set[str]:
    return {name for form in forms_of(text) for _, name, _, _ in Formatter().parse(form) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_texts(language: str) -> None:
    assert set(texts_of(language)) == set(texts_of("en"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty(language: str) -> None:
    assert not [key for key, text in texts_of(language).items() if not all(forms_of(text))]


@pytest.mark.parametrize("language", OTHERS)
def test_a_text_has_the_same_placeholders_in_every_language(language: str) -> None:
    english = texts_of("en")
    differ = {
        key
        for key, text in texts_of(language).items()
        if placeholders(text) - {"count"} != placeholders(english[key]) - {"count"}
    }
    assert not differ


@pytest.mark.parametrize("language", OTHERS)
def test_a_text_with_plural_forms_has_them_in_every_language(language: str) -> None:
    english = texts_of("en")
    differ = {
        key
        for key, text in texts_of(language).items()
        if isinstance(text, str) != isinstance(english[key], str)
    }
    assert not differ


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_with_a_number_has_every_plural_form_of_its_language(language: str) -> None:
    wanted = len(Locale.parse(language).plural_form.tags | {"other"})
    incomplete = {
        key: text
        for key, text in texts_of(language).items()
        if not isinstance(text, str) and len(text) != wanted
    }
    assert not incomplete


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_plural_rule_of_a_catalogue_is_that_of_cldr(language: str) -> None:
    """Scripts choose a form by Intl.PluralRules, the server by the catalogue's rule: they must agree."""
    cldr = Locale.parse(language).plural_form
    categories = [name for name in CLDR_PLURALS if name in cldr.tags | {"other"}]
    index = catalogue_for(language).plural_index

    assert [categories[index(number)] for number in NUMBERS] == [cldr(number) for number in NUMBERS]


def test_every_problem_that_pages_explain_has_a_title() -> None:
    """A page without one has the title of the API, which is in English."""
    sentences = {key.removeprefix("problems.") for key in texts_of("en") if key.startswith("problems.")}
    titles = {
        key.removeprefix("problem_titles.") for key in texts_of("en") if key.startswith("problem_titles.")
    }

    assert sentences == titles


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_contains_markup(language: str) -> None:
    forms = [form for text in texts_of(language).values() for form in forms_of(text)]
    assert not [form for form in forms if re.search(r"<[a-z/]|&[a-z]+;", form)]


def test_scripts_get_plural_forms_by_name() -> None:
    given = localiser_for("de_DE").texts_for_scripts("seats.map_")

    assert given["total"] == "Gesamt"
    assert given["left"] == {"one": "noch {count}", "other": "noch {count}"}


def test_money_is_written_as_each_language_does_and_never_rounded() -> None:
    assert localiser_for("en_GB").money(150_000, "EUR") == "€1,500"
    assert localiser_for("en_GB").money(150_050, "EUR") == "€1,500.50"
    assert localiser_for("de_DE").money(150_050, "EUR") == "1.500,50\xa0€"
    assert localiser_for("en_IN").money(123_456_700, "INR") == "₹12,34,567"
    assert localiser_for("hi_IN").money(123_456_750, "INR") == "₹12,34,567.50"
    assert localiser_for("en_US").money(1_500, "JPY") == "¥1,500"
    assert localiser_for("en_US").money(1_500, "KWD") == "KWD1.500"


def test_days_and_times_are_the_venues() -> None:
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    assert localiser_for("en_GB").day(at, "Asia/Kolkata") == "Saturday 21 November"
    assert localiser_for("en_US").day(at, "Europe/Berlin") == "Friday, November 20"
    assert localiser_for("hi_IN").day(at, "Europe/Berlin") == "शुक्रवार, 20 नवंबर"
    assert localiser_for("de_DE").day(at, "Europe/Berlin") == "Freitag, 20. November"
    assert localiser_for("en_GB").time(at, "Asia/Kolkata") == "00:00"
    assert localiser_for("en_US").time(at, "Europe/Berlin").replace("\u202f", " ") == "7:30 PM"


def test_a_time_zone_has_its_local_name() -> None:
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    named = [
        localiser_for("en_US").zone(at, zone) for zone in ("Asia/Kolkata", "Europe/Berlin", "Asia/Tokyo")
    ]
    assert named == ["IST", "CET", "JST"]


def test_numbers_have_their_forms() -> None:
    assert (
        localiser_for("en_GB").t("account.too_often", count=1) == "Too many attempts. Try again in a minute."
    )
    assert localiser_for("de_DE").t("account.too_often", count=3).endswith("in 3 Minuten wieder.")


def test_a_region_is_taken_from_the_browser_where_we_know_it() -> None:
    assert choose_locale(None, "en-IN,en;q=0.9,hi;q=0.8") == "en_IN"
    assert choose_locale("de", "en-US,de-AT;q=0.5") == "de_AT"
    assert choose_locale("xx", "fr-FR") == LOCALES["en"][0]
    assert choose_locale(None, None) == LOCALES["en"][0]


@pytest.mark.parametrize("path", ["/", "/shows/7?a=b#c", "/find?q=ä"])
def test_a_path_on_this_site_is_followed(path: str) -> None:
    assert safe_path(path, "/my") == path


@pytest.mark.parametrize(
    "path", ["", "my", "//x.example", "/\\x.example", "https://x.example", "/a\\b", "/a\nb", "/" + "a" * 1000]
)
def test_any_other_is_not(path: str) -> None:
    assert safe_path(path, "/my") == "/my"


def test_a_form_is_accepted_when_the_browser_reports_the_same_origin() -> None:
    assert is_same_origin({b"sec-fetch-site": b"same-origin", b"origin": b"https://elsewhere"}, "box.office")
    assert is_same_origin({b"sec-fetch-site": b"none"}, "box.office")
    assert is_same_origin({b"origin": b"https://box.office"}, "box.office")
    assert is_same_origin({}, "box.office"), "no browser: it has no cookies that a site could abuse"
    assert not is_same_origin({b"sec-fetch-site": b"same-site"}, "box.office")
    assert not is_same_origin({b"sec-fetch-site": b"cross-site"}, "box.office")
    assert not is_same_origin({b"origin": b"https://box.office.evil.example"}, "box.office")
    assert not is_same_origin({b"origin": b"null"}, "box.office")


def test_a_cookie_is_read_as_it_was_set_and_others_are_left_alone() -> None:
    header = set_cookie("holdfast", "a-b_C1", is_secure=True).partition(";")[0].encode()
    assert parse_cookies(header + b"; other=1; holdfast_city=pune") == {
        "holdfast": "a-b_C1",
        "holdfast_city": "pune",
    }
    assert parse_cookies(b"holdfast=" + b"x" * 20_000) == {}
    assert parse_cookies(b'a[b]={"c": 1, "d"; =; ;;holdfast=a-b') == {"holdfast": "a-b"}
    assert parse_cookies(None) == {}


class TestParsedCatalogues:
    """The first process parses the texts and stores the result; reading it takes a twentieth of the time."""

    CONTENT = b"""
msgid ""
msgstr "Plural-Forms: nplurals=2; plural=(n != 1);\\n"

msgid "seats.count"
msgid_plural "seats.count"
msgstr[0] "{count} seat"
msgstr[1] "{count} seats"

msgid "seats.hold"
msgstr "Hold"
"""
    TEXTS: ClassVar = {"seats.count": ("{count} seat", "{count} seats"), "seats.hold": "Hold"}

    def test_what_is_read_is_what_was_parsed(self, tmp_path: Path) -> None:
        parsed = load_catalogue(self.CONTENT, tmp_path)
        read = load_catalogue(self.CONTENT, tmp_path)

        assert parsed == read == parse_catalogue(self.CONTENT) == load_catalogue(self.CONTENT, None)
        assert read.texts == self.TEXTS
        assert [read.build().plural_index(number) for number in (0, 1, 2)] == [1, 0, 1]

    def test_it_is_read_and_not_parsed_again(self, tmp_path: Path) -> None:
        load_catalogue(self.CONTENT, tmp_path)
        (file,) = tmp_path.iterdir()
        file.write_bytes(file.read_bytes().replace(b"Hold", b"Stored"))

        assert load_catalogue(self.CONTENT, tmp_path).texts["seats.hold"] == "Stored"

    def test_other_texts_are_another_file(self, tmp_path: Path) -> None:
        load_catalogue(self.CONTENT, tmp_path)

        changed = load_catalogue(self.CONTENT.replace(b'"Hold"', b'"Hold seats"'), tmp_path)

        assert changed.texts["seats.hold"] == "Hold seats"

    def test_half_a_file_is_parsed_and_replaced(self, tmp_path: Path) -> None:
        load_catalogue(self.CONTENT, tmp_path)
        (file,) = tmp_path.iterdir()
        whole = file.read_bytes()
        file.write_bytes(whole[:20])

        assert load_catalogue(self.CONTENT, tmp_path).texts == self.TEXTS
        assert file.read_bytes() == whole

    def test_without_a_folder_to_write_to_it_is_parsed(self, tmp_path: Path) -> None:
        assert load_catalogue(self.CONTENT, tmp_path / "missing").texts == self.TEXTS
