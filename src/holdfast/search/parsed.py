"""What is really looked for. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from holdfast.search.query import match_all, match_any, match_some

COMMON_USES = 20_000  # "any of the words" leaves more common ones out, if others are left
OFTEN_USES = 2_000  # enough to find some among the most wanted, too many to look at all
WHOLE_USES = 500


@dataclass(slots=True)
class WordFrequency:
    listings: int  # there are so many in all
    of: dict[str, int] = field(default_factory=dict)  # by word
    beginning: dict[str, int] = field(default_factory=dict)  # of all words that begin so, together

    def __contains__(self, word: str) -> bool:
        return word in self.of

    def learn(self, of: Mapping[str, int]) -> None:
        self.of.update(of)

    def is_whole(self, words: Sequence[str]) -> bool:
        """A last word that is used so often is not the beginning of another; looking for those costs much."""
        return self.of.get(words[-1], 0) >= WHOLE_USES

    def are_common(self, words: Sequence[str]) -> bool:
        """Whether many have all of them, going by how many have each."""
        counts = {word: self.of.get(word, 0) for word in words}
        if not self.is_whole(words):
            counts[words[-1]] = max(counts[words[-1]], self.beginning.get(words[-1], 0))
        shares = [min(1.0, count / max(1, self.listings)) for count in counts.values()]
        return self.listings * prod(shares) >= OFTEN_USES

    def is_any_common(self, words: Iterable[str]) -> bool:
        return any(self.of.get(word, 0) >= OFTEN_USES for word in words)

    def telling(self, words: Sequence[str]) -> tuple[str, ...]:
        """Those that are not everywhere, or the rarest."""
        rare = tuple(word for word in words if self.of.get(word, 0) <= COMMON_USES)
        return rare or (min(words, key=lambda word: self.of.get(word, 0)),)


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
