"""How often words are used, as far as one search has to know. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

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
