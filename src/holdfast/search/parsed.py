"""The query that search runs, and word frequencies. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from holdfast.search.query import match_all, match_any, match_some

COMMON_USES = 20_000  # "any word" ignores more common words if others remain
OFTEN_USES = 2_000  # enough to find some among the most popular, too many to rank all
WHOLE_USES = 500


@dataclass(slots=True)
class WordFrequency:
    listings: int  # total number of listings
    of: dict[str, int] = field(default_factory=dict)  # by word
    beginning: dict[str, int] = field(default_factory=dict)  # sum over all words with this prefix

    def __contains__(self, word: str) -> bool:
        return word in self.of

    def add(self, of: Mapping[str, int]) -> None:
        self.of.update(of)

    def is_whole(self, words: Sequence[str]) -> bool:
        """Whether the last word is complete: so frequent a word is not a prefix. Prefix search is slow."""
        return self.of.get(words[-1], 0) >= WHOLE_USES

    def are_common(self, words: Sequence[str]) -> bool:
        """Whether many listings probably contain all words, estimated from the frequency of each."""
        counts = {word: self.of.get(word, 0) for word in words}
        if not self.is_whole(words):
            counts[words[-1]] = max(counts[words[-1]], self.beginning.get(words[-1], 0))
        shares = [min(1.0, count / max(1, self.listings)) for count in counts.values()]
        return self.listings * prod(shares) >= OFTEN_USES

    def is_any_common(self, words: Iterable[str]) -> bool:
        return any(self.of.get(word, 0) >= OFTEN_USES for word in words)

    def distinctive(self, words: Sequence[str]) -> tuple[str, ...]:
        """The words that are not too common, or else the rarest one."""
        rare = tuple(word for word in words if self.of.get(word, 0) <= COMMON_USES)
        return rare or (min(words, key=lambda word: self.of.get(word, 0)),)


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    words: tuple[str, ...]
    query: str | None  # a tsquery; None: no words
    match: str = "all"
    is_corrected: bool = False
    has_no_match: bool = False  # no known word is near
    is_common: bool = False  # matches so many that the most popular come first


ANYTHING = ParsedQuery((), None)


def parse_all_words(
    words: tuple[str, ...], frequency: WordFrequency, *, is_corrected: bool = False
) -> ParsedQuery:
    query, is_common = match_all(words, is_whole=frequency.is_whole(words)), frequency.are_common(words)
    return ParsedQuery(words, query, is_corrected=is_corrected, is_common=is_common)


def parse_any_word(words: tuple[str, ...], frequency: WordFrequency, *, is_corrected: bool) -> ParsedQuery:
    """Any of the distinctive words."""
    words = frequency.distinctive(words)
    query = match_some(words, is_whole=frequency.is_whole(words))
    return ParsedQuery(words, query, "any", is_corrected, is_common=frequency.is_any_common(words))


def match_word(word: str, words: Sequence[str]) -> str | None:
    """One of these words alone, as a tsquery; the last one may be incomplete."""
    return match_all([word]) if word == words[-1] else match_any([word])


def join_pair(words: tuple[str, ...], pair: str) -> tuple[str, ...]:
    """Replace the two neighbours that form this word by it."""
    for at in range(len(words) - 1):
        if words[at] + words[at + 1] == pair:
            return (*words[:at], pair, *words[at + 2 :])
    return words
