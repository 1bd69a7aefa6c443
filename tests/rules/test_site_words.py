"""What pages say: every sentence in every language, with the same blanks, and forms for every number."""

import re
from datetime import UTC, datetime
from string import Formatter

import pytest
from babel.core import Locale

from holdfast.accounts import LANGUAGES
from holdfast.site.browser import LOCALES, cookies_of, is_from_here, locale_of, safe_path, set_cookie
from holdfast.site.templates_env import sentences, words_of

OTHERS = [language for language in LANGUAGES if language != "en"]
Sentence = str | dict[str, str]


def all_of(language: str) -> dict[str, Sentence]:
    return {
        f"{part}.{name}": sentence
        for part, named in sentences()[language].items()
        for name, sentence in named.items()
    }


def blanks(sentence: Sentence) -> set[str]:
    forms = [sentence] if isinstance(sentence, str) else list(sentence.values())
    return {name for form in forms for _, name, _, _ in Formatter().parse(form) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_says_the_same_things(language: str) -> None:
    assert set(all_of(language)) == set(all_of("en"))


@pytest.mark.parametrize("language", OTHERS)
def test_a_sentence_has_the_same_blanks_in_every_language(language: str) -> None:
    ours = all_of("en")
    differ = {
        name
        for name, sentence in all_of(language).items()
        if blanks(sentence) - {"count"} != blanks(ours[name]) - {"count"}
    }
    assert not differ


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_with_a_number_has_every_form_its_language_knows(language: str) -> None:
    forms = Locale.parse(language).plural_form.tags | {"other"}
    incomplete = {
        name: set(sentence)
        for name, sentence in all_of(language).items()
        if not isinstance(sentence, str) and set(sentence) != forms
    }
    assert not incomplete


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_markup(language: str) -> None:
    forms = [
        form
        for sentence in all_of(language).values()
        for form in ([sentence] if isinstance(sentence, str) else sentence.values())
    ]
    assert not [form for form in forms if re.search(r"<[a-z/]|&[a-z]+;", form)]


def test_money_is_written_as_each_language_does_and_never_rounded() -> None:
    assert words_of("en_GB").money(150_000, "EUR") == "€1,500"
    assert words_of("en_GB").money(150_050, "EUR") == "€1,500.50"
    assert words_of("de_DE").money(150_050, "EUR") == "1.500,50\xa0€"
    assert words_of("en_IN").money(123_456_700, "INR") == "₹12,34,567"
    assert words_of("hi_IN").money(123_456_750, "INR") == "₹12,34,567.50"
    assert words_of("en_US").money(1_500, "JPY") == "¥1,500"
    assert words_of("en_US").money(1_500, "KWD") == "KWD1.500"


def test_days_and_times_are_the_venues() -> None:
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    assert words_of("en_GB").day(at, "Asia/Kolkata") == "Saturday 21 November"
    assert words_of("en_US").day(at, "Europe/Berlin") == "Friday, November 20"
    assert words_of("hi_IN").day(at, "Europe/Berlin") == "शुक्रवार, 20 नवंबर"
    assert words_of("de_DE").day(at, "Europe/Berlin") == "Freitag, 20. November"
    assert words_of("en_GB").time(at, "Asia/Kolkata") == "00:00"
    assert words_of("en_US").time(at, "Europe/Berlin").replace("\u202f", " ") == "7:30 PM"


def test_a_zone_is_called_what_people_there_call_it() -> None:
    at = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
    named = [words_of("en_US").zone(at, zone) for zone in ("Asia/Kolkata", "Europe/Berlin", "Asia/Tokyo")]
    assert named == ["IST", "CET", "JST"]


def test_numbers_have_their_forms() -> None:
    assert words_of("en_GB").say("account.too_often", count=1) == "Too many tries. Try again in a minute."
    assert words_of("de_DE").say("account.too_often", count=3).endswith("in 3 Minuten wieder.")


def test_a_region_is_taken_from_the_browser_where_we_know_it() -> None:
    assert locale_of(None, "en-IN,en;q=0.9,hi;q=0.8") == "en_IN"
    assert locale_of("de", "en-US,de-AT;q=0.5") == "de_AT"
    assert locale_of("xx", "fr-FR") == LOCALES["en"][0]
    assert locale_of(None, None) == LOCALES["en"][0]


@pytest.mark.parametrize("path", ["/", "/shows/7?a=b#c", "/find?q=ä"])
def test_a_path_of_ours_is_followed(path: str) -> None:
    assert safe_path(path, "/my") == path


@pytest.mark.parametrize(
    "path", ["", "my", "//x.example", "/\\x.example", "https://x.example", "/a\\b", "/a\nb", "/" + "a" * 1000]
)
def test_any_other_is_not(path: str) -> None:
    assert safe_path(path, "/my") == "/my"


def test_a_form_is_ours_when_the_browser_says_so() -> None:
    assert is_from_here({b"sec-fetch-site": b"same-origin", b"origin": b"https://elsewhere"}, "box.office")
    assert is_from_here({b"sec-fetch-site": b"none"}, "box.office")
    assert is_from_here({b"origin": b"https://box.office"}, "box.office")
    assert is_from_here({}, "box.office"), "no browser: it has no cookies that somebody could abuse"
    assert not is_from_here({b"sec-fetch-site": b"same-site"}, "box.office")
    assert not is_from_here({b"sec-fetch-site": b"cross-site"}, "box.office")
    assert not is_from_here({b"origin": b"https://box.office.evil.example"}, "box.office")
    assert not is_from_here({b"origin": b"null"}, "box.office")


def test_a_cookie_is_read_as_it_was_set_and_others_are_left_alone() -> None:
    header = set_cookie("holdfast", "a-b_C1", is_secure=True).partition(";")[0].encode()
    assert cookies_of(header + b"; other=1; holdfast_city=pune") == {
        "holdfast": "a-b_C1",
        "holdfast_city": "pune",
    }
    assert cookies_of(b"holdfast=" + b"x" * 20_000) == {}
    assert cookies_of(b'a[b]={"c": 1, "d"; =; ;;holdfast=a-b') == {"holdfast": "a-b"}
    assert cookies_of(None) == {}
