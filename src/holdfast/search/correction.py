"""What was meant: as it was typed, or with misspelt words corrected, or any of the words.

Each is looked for only if nothing has the one before. Most people type what is there: for them, all this is
one look at how often the words are used.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from holdfast.engines.sql import Queries
from holdfast.search.parsed import (
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

    async def meanings(self, words: tuple[str, ...]) -> AsyncIterator[ParsedQuery]:
        """The likeliest first. The last one is hopeless, or `any`."""
        uses = await self._uses(words)
        yield parse_all_words(words, uses)
        corrected = await self._corrected(words, uses)
        if not corrected:
            yield ParsedQuery(words, None, is_hopeless=True)
            return
        if corrected != words:
            yield parse_all_words(corrected, uses, is_corrected=True)
        yield parse_any_word(corrected, uses, is_corrected=corrected != words)

    async def is_found(self, meaning: ParsedQuery) -> bool:
        """Whether anything has it, wherever and whenever that is."""
        return (await self._found([meaning.query]))[0]

    async def _corrected(self, words: tuple[str, ...], uses: WordFrequency) -> tuple[str, ...]:
        """Words that we know as they are, the nearest one for others; what nothing comes near is left out.

        `uses` learns what is known of the words that were found.
        """
        if pairs := [pair for pair in join_neighbours(words) if pair in uses]:
            words = join_pair(words, pairs[0])
        strange = [word for word in words if word not in uses]
        told = await self._found([match_word(word, words) for word in strange]) if strange else []
        unknown = [word for word, is_told in zip(strange, told, strict=True) if not is_told]
        found = await self._near(unknown, uses)
        return tuple(meant for word in words if (meant := found.get(word, word)))

    async def _near(self, words: Sequence[str], uses: WordFrequency) -> dict[str, str | None]:
        """For each the nearest we know: one letter wrong, or else two, or else the one that it begins."""
        found: dict[str, str | None] = {}
        for edits in (1, 2):
            left = [word for word in words if word not in found and edits_max(word) >= edits]
            keys = {key for word in left for key in build_spelling_keys(word, edits)}
            rows = await self._fetch(Q.words_near, sorted(keys)) if keys else []
            near = {row["word"]: row["uses"] for row in rows}
            found |= {word: meant for word in left if (meant := find_nearest(word, near, edits))}
            uses.learn(near)
        for word in words:
            if word not in found:  # “orch” is short for something
                rows = await self._fetch(Q.words_beginning, word, 1)
                found[word] = rows[0]["word"] if rows else None
                uses.learn({row["word"]: row["uses"] for row in rows})
        return found

    async def _uses(self, words: Sequence[str]) -> WordFrequency:
        rows = await self._fetch(Q.words_known, [*words, *join_neighbours(words)], words[-1])
        total, begun, *known = rows
        return WordFrequency(
            total["uses"], {row["word"]: row["uses"] for row in known}, {words[-1]: begun["uses"]}
        )

    async def _found(self, queries: Sequence[str | None]) -> list[bool]:
        return [row["found"] for row in await self._fetch(Q.found, list(queries))]
