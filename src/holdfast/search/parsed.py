"""What is really looked for. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.search.query import match_all, match_any, match_some
from holdfast.search.word_frequency import WordFrequency


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    words: tuple[str, ...]
    query: str | None  # a tsquery; None: whatever the words
    match: str = "all"
    is_corrected: bool = False
    is_hopeless: bool = False  # nothing we have comes near
    is_common: bool = False  # so many have it that those who are wanted most come first


ANYTHING = ParsedQuery((), None)


def parse_all_words(
    words: tuple[str, ...], uses: WordFrequency, *, is_corrected: bool = False
) -> ParsedQuery:
    query, is_common = match_all(words, is_whole=uses.is_whole(words)), uses.are_common(words)
    return ParsedQuery(words, query, is_corrected=is_corrected, is_common=is_common)


def parse_any_word(words: tuple[str, ...], uses: WordFrequency, *, is_corrected: bool) -> ParsedQuery:
    """Any of those that tell something."""
    words = uses.telling(words)
    query = match_some(words, is_whole=uses.is_whole(words))
    return ParsedQuery(words, query, "any", is_corrected, is_common=uses.is_any_common(words))


def match_word(word: str, words: Sequence[str]) -> str | None:
    """One of these words by itself, as a tsquery; the last one may be unfinished."""
    return match_all([word]) if word == words[-1] else match_any([word])


def join_pair(words: tuple[str, ...], pair: str) -> tuple[str, ...]:
    """The two neighbours that make this word, as one."""
    for at in range(len(words) - 1):
        if words[at] + words[at + 1] == pair:
            return (*words[:at], pair, *words[at + 2 :])
    return words
