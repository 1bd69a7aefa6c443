"""What is really looked for. No I/O."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.search.query import all_of, any_of, some_of
from holdfast.search.word_frequency import Uses


@dataclass(frozen=True, slots=True)
class Meaning:
    words: tuple[str, ...]
    query: str | None  # a tsquery; None: whatever the words
    match: str = "all"
    is_corrected: bool = False
    is_hopeless: bool = False  # nothing we have comes near
    is_common: bool = False  # so many have it that those who are wanted most come first


ANYTHING = Meaning((), None)


def all_words(words: tuple[str, ...], uses: Uses, *, is_corrected: bool = False) -> Meaning:
    query, is_common = all_of(words, is_whole=uses.is_whole(words)), uses.are_common(words)
    return Meaning(words, query, is_corrected=is_corrected, is_common=is_common)


def any_word(words: tuple[str, ...], uses: Uses, *, is_corrected: bool) -> Meaning:
    """Any of those that tell something."""
    words = uses.telling(words)
    query = some_of(words, is_whole=uses.is_whole(words))
    return Meaning(words, query, "any", is_corrected, is_common=uses.is_any_common(words))


def alone(word: str, words: Sequence[str]) -> str | None:
    """One of these words by itself, as a tsquery; the last one may be unfinished."""
    return all_of([word]) if word == words[-1] else any_of([word])


def with_pair(words: tuple[str, ...], pair: str) -> tuple[str, ...]:
    """The two neighbours that make this word, as one."""
    for at in range(len(words) - 1):
        if words[at] + words[at + 1] == pair:
            return (*words[:at], pair, *words[at + 2 :])
    return words
