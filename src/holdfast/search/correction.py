"""Finds the query to run: as typed, or with misspelt words corrected, or any of the words.

Each is tried only if the one before has no match. Most queries match as typed; for them all this is one
lookup of word frequencies.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from holdfast.engines.postgres import Queries
from holdfast.search.query import (
    ParsedQuery,
    WordFrequency,
    join_pair,
    match_word,
    parse_all_words,
    parse_any_word,
)
from holdfast.search.words import build_spelling_keys, edits_max, find_nearest, join_neighbours

Q = Queries("holdfast.search", "correction")

Fetch = Callable[..., Awaitable[list[Any]]]


class QueryCorrector:
    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch

    async def interpretations(self, words: tuple[str, ...]) -> AsyncIterator[ParsedQuery]:
        """The likeliest first. The last one has no match, or matches `any` word."""
        frequency = await self._load_frequency(words)
        yield parse_all_words(words, frequency)
        corrected = await self._corrected(words, frequency)
        if not corrected:
            yield ParsedQuery(words, None, has_no_match=True)
            return
        if corrected != words:
            yield parse_all_words(corrected, frequency, is_corrected=True)
        yield parse_any_word(corrected, frequency, is_corrected=corrected != words)

    async def is_found(self, meaning: ParsedQuery) -> bool:
        """Whether any listing matches, ignoring filters."""
        return (await self._found([meaning.query]))[0]

    async def _corrected(self, words: tuple[str, ...], frequency: WordFrequency) -> tuple[str, ...]:
        """Known words unchanged, the nearest known word for others; words without a near one are dropped.

        Adds the frequencies of the words found to `frequency`.
        """
        if pairs := [pair for pair in join_neighbours(words) if pair in frequency]:
            words = join_pair(words, pairs[0])
        unseen = [word for word in words if word not in frequency]
        matches = await self._found([match_word(word, words) for word in unseen]) if unseen else []
        unknown = [word for word, is_match in zip(unseen, matches, strict=True) if not is_match]
        found = await self._near(unknown, frequency)
        return tuple(known for word in words if (known := found.get(word, word)))

    async def _near(self, words: Sequence[str], frequency: WordFrequency) -> dict[str, str | None]:
        """The nearest known word for each: one edit away, else two, else a word that begins with it."""
        found: dict[str, str | None] = {}
        for edits in (1, 2):
            left = [word for word in words if word not in found and edits_max(word) >= edits]
            keys = {key for word in left for key in build_spelling_keys(word, edits)}
            rows = await self._fetch(Q.words_near, sorted(keys)) if keys else []
            near = {row["word"]: row["uses"] for row in rows}
            found |= {word: known for word in left if (known := find_nearest(word, near, edits))}
            frequency.add(near)
        for word in words:
            if word not in found:  # “orch” is the beginning of “orchestra”
                rows = await self._fetch(Q.words_beginning, word, 1)
                found[word] = rows[0]["word"] if rows else None
                frequency.add({row["word"]: row["uses"] for row in rows})
        return found

    async def _load_frequency(self, words: Sequence[str]) -> WordFrequency:
        rows = await self._fetch(Q.words_known, [*words, *join_neighbours(words)], words[-1])
        total, begun, *known = rows
        return WordFrequency(
            total["uses"], {row["word"]: row["uses"] for row in known}, {words[-1]: begun["uses"]}
        )

    async def _found(self, queries: Sequence[str | None]) -> list[bool]:
        return [row["found"] for row in await self._fetch(Q.found, list(queries))]
