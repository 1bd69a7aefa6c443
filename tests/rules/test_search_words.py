"""Words of any script, misspelt words, and searches that contradict themselves."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.search.errors import PageTooDeep
from holdfast.search.listing import build_tsvector
from holdfast.search.query import (
    DEPTH_MAX,
    EventSearchQuery,
    Filters,
    ResultPosition,
    Sort,
    WordFrequency,
    match_all,
    match_any,
    match_some,
    parse_search,
)
from holdfast.search.words import (
    WORD_LETTERS_MAX,
    build_spelling_keys,
    distance,
    edits_max,
    find_nearest,
    join_neighbours,
    split_words,
)


@pytest.mark.parametrize(
    "text, words",
    [
        ("The Quiet Algorithm", ["the", "quiet", "algorithm"]),
        ("Les Oiseaux Mécaniques", ["les", "oiseaux", "mecaniques"]),
        ("L'Été à Saint-Malo", ["l", "ete", "a", "saint", "malo"]),
        ("Le Cœur, STRASSE, Straße", ["le", "coeur", "strasse", "strasse"]),
        ("Don't, O'Brien; the King's", ["dont", "o", "brien", "the", "kings"]),
        ("मॉनसून का गणित", ["मॉनसून", "का", "गणित"]),
        ("कडल कड़ल", ["कडल", "कडल"]),
        ("நீலக் குடை", ["நீலக்", "குடை"]),
        ("ｆｕｌｌ ２０２６", ["full", "2026"]),
        ("snake_case 100%", ["snake", "case", "100"]),
        ("'; DROP TABLE show; -- \\ :* & | ! <->", ["drop", "table", "show"]),
        ("… !!! ---", []),
    ],
)
def test_a_text_is_taken_apart_into_words(text: str, words: list[str]) -> None:
    assert split_words(text) == words


def test_an_endless_word_is_cut() -> None:
    assert split_words("a" * 5000) == ["a" * WORD_LETTERS_MAX]


def test_the_same_word_in_two_unicode_spellings_is_one() -> None:
    assert split_words("Me\u0301caniques") == split_words("M\u00e9caniques")


@pytest.mark.parametrize(
    "typed, known, edits",
    [
        ("monsoon", "monsoon", 0),
        ("mosnoon", "monsoon", 1),
        ("monson", "monsoon", 1),
        ("monsooon", "monsoon", 1),
        ("lighthose", "lighthouse", 1),
        ("algoritm", "algorithm", 1),
        ("arithmatik", "arithmetic", 2),
        ("गनित", "गणित", 1),
    ],
)
def test_words_are_as_far_apart_as_their_letters(typed: str, known: str, edits: int) -> None:
    assert distance(typed, known, 2) == distance(known, typed, 2) == edits
    assert set(build_spelling_keys(typed)) & set(build_spelling_keys(known)), "a lookup by keys must find it"


def plain_distance(a: str, b: str) -> int:
    """The same, slowly: the full edit-distance table."""
    table = {(i, 0): i for i in range(len(a) + 1)} | {(0, j): j for j in range(len(b) + 1)}
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            ways = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a[i - 1] != b[j - 1])]
            if i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]:
                ways.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(ways)
    return table[len(a), len(b)]


WORDS = st.text("abc", min_size=1, max_size=9)


@given(WORDS, WORDS, st.integers(0, 2))
def test_the_fast_word_distance_equals_the_slow_one(a: str, b: str, most: int) -> None:
    apart = plain_distance(a, b)

    assert distance(a, b, most) == (apart if apart <= most else None)


@given(WORDS, WORDS)
def test_a_word_one_letter_away_is_found_by_the_few_keys_for_that(typed: str, known: str) -> None:
    if plain_distance(typed, known) == 1 == min(edits_max(typed), edits_max(known), 1):
        assert set(build_spelling_keys(typed, 1)) & set(build_spelling_keys(known))


def test_words_too_far_apart_are_not_near() -> None:
    assert distance("monsoon", "moon", 2) is None
    assert distance("abcdef", "uvwxyz", 2) is None


def test_short_words_and_numbers_are_not_corrected() -> None:
    assert [edits_max(word) for word in ("le", "chai", "neelam", "2026", "b2b")] == [0, 1, 2, 0, 0]


def test_the_nearest_word_wins_and_then_the_most_frequent() -> None:
    assert find_nearest("harbor", {"harbour": 3, "barbor": 900}) == "harbour"
    assert find_nearest("harbur", {"harbour": 3, "harbum": 900}) == "harbum"
    assert find_nearest("xyz", {"harbour": 3}) is None


def test_neighbours_are_also_one_word() -> None:
    assert join_neighbours(["the", "paper", "boats"]) == ["thepaper", "paperboats"]


def test_a_document_keeps_weight_and_place_of_each_word() -> None:
    assert build_tsvector({"A": ["paper", "boats"], "D": ["paper"]}) == "'paper':1A,13D 'boats':2A"


def test_the_last_word_may_go_on() -> None:
    assert match_all(("paper", "boa")) == "'paper' & 'boa':*"
    assert match_some(("paper", "boa")) == "'paper' | 'boa':*"
    assert match_any(("paper", "boats"), "AB") == "'paper':AB | 'boats':AB"
    assert match_all(()) is None


def test_without_words_the_soonest_come_first_and_relevance_means_popularity() -> None:
    assert parse_search(EventSearchQuery()).sort is Sort.SHOWTIME
    assert parse_search(EventSearchQuery(q="!!!", sort=Sort.RELEVANCE)).sort is Sort.POPULARITY
    assert parse_search(EventSearchQuery(q="jazz")).sort is Sort.RELEVANCE


def test_only_some_filters_need_a_look_at_shows() -> None:
    assert not Filters(city="paris", kind="film", genre="drama").look_at_shows
    assert Filters(price_max_minor=1000).look_at_shows
    assert Filters(only_available=True).look_at_shows
    assert Filters(venues=()).look_at_shows


@pytest.mark.parametrize(
    "parameters, field",
    [
        ({"near": "91,0"}, "near"),
        ({"near": "12.3"}, "near"),
        ({"near": "nan,nan"}, "near"),
        ({"near": "1,2,3"}, "near"),
        ({"near": "1,2", "postal_code": "10999"}, "postal_code"),
        ({"postal_code": "--"}, "postal_code"),
        ({"sort": Sort.DISTANCE}, "sort"),
        ({"price_min_minor": 2, "price_max_minor": 1}, "price_max_minor"),
        ({"cursor": "abc"}, "cursor"),
        ({"cursor": "\u00e4"}, "cursor"),
        ({"cursor": "YTpiOmM", "page": 2}, "page"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused_with_its_field(
    parameters: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        parse_search(EventSearchQuery(**parameters))

    assert refused.value.details["field"] == field


def test_pages_by_number_end_somewhere() -> None:
    parse_search(EventSearchQuery(page=DEPTH_MAX // 20, size=20))

    with pytest.raises(PageTooDeep):
        parse_search(EventSearchQuery(page=DEPTH_MAX // 20 + 1, size=20))


def test_a_cursor_leads_back_to_its_place_in_its_own_search_only() -> None:
    search = parse_search(EventSearchQuery(q="jazz", city="paris"))
    cursor = search.cursor(ResultPosition(-0.125, 42))

    assert parse_search(
        EventSearchQuery(q="jazz", city="paris", size=5, cursor=cursor)
    ).after == ResultPosition(-0.125, 42)
    for other in ({"q": "rock", "city": "paris"}, {"q": "jazz"}, {"q": "jazz", "sort": Sort.PRICE}):
        with pytest.raises(Invalid):
            parse_search(EventSearchQuery(**other, cursor=cursor))  # type: ignore[arg-type]


def test_words_are_common_if_many_are_likely_to_have_them_all() -> None:
    uses = WordFrequency(
        100_000, {"the": 50_000, "night": 5_000, "boats": 3_000, "lantern": 40}, {"nig": 5_100}
    )

    assert uses.are_common(("the",))
    assert uses.are_common(("the", "night"))
    assert uses.are_common(("nig",))
    assert uses.are_common(("night", "night"))
    assert not uses.are_common(("night", "boats"))
    assert not uses.are_common(("the", "lantern"))
    assert not uses.are_common(("unknown",))
    assert uses.distinctive(("the", "night", "lantern")) == ("night", "lantern")
    assert uses.distinctive(("the", "the")) == ("the",)
