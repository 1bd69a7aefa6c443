"""Splits text into words and finds near matches of misspelt words. No I/O.

Letters, marks and digits belong to words; everything else separates them. PostgreSQL's parser splits Indic
words at their vowel signs (they are marks, not letters), so it is not used: documents and queries are built
from these words, and are the same on every server, whatever its locale.

    "L'Été à Chennai"  →  l ete a chennai        case and accents are removed
    "मॉनसून का गणित"     →  मॉनसून का गणित           vowel signs stay
    "Don't"            →  dont                   English endings are joined; other apostrophes separate words

Two words are near if few letters have to be added, removed, replaced or swapped with a neighbour. To avoid
comparing with all words, a known word is indexed under its beginning and under every string that results from
deleting one or two letters of it. If a misspelt word is near, it shares such a string. So a lookup is a few
dozen exact keys in an index, however many words there are, in any script.

    monsoon  →  monsoon onsoon mnsoon mosoon … nsoon msoon …
    mosnoon  →  mosnoon osnoon … mosoon …          a shared key: near
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations, pairwise

WORD_LETTERS_MAX = 40  # longer words are cut
LETTERS_APART = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss"})
# Accents of European letters; the Indic nukta, which many people omit; invisible joiners.
ACCENTS = re.compile("[\u0300-\u036f\u093c\u09bc\u0a3c\u0abc\u0b3c\u200b-\u200d\ufeff]")
SPELT_EITHER_WAY = str.maketrans({"ँ": "ं"})  # the nasal dot and the one with its moon
APOSTROPHE = re.compile("(?<=\\w\\w)['’ʼ`](?=(?:s|t|d|m|re|ve|ll)(?:\\W|$))")


def split_words(text: str) -> list[str]:
    """All words in order, with repetitions."""
    return [word[:WORD_LETTERS_MAX] for word in _word().findall(fold(text))]


def fold(text: str) -> str:
    """Remove case, accents and joiners, which people omit when typing."""
    text = APOSTROPHE.sub("", unicodedata.normalize("NFKC", text).casefold())
    if text.isascii():
        return text
    bare = ACCENTS.sub("", unicodedata.normalize("NFKD", text.translate(LETTERS_APART)))
    return unicodedata.normalize("NFC", bare).translate(SPELT_EITHER_WAY)


@cache
def _word() -> re.Pattern[str]:
    """Letters, digits and marks. `\\w` alone leaves the marks out, and so would break Indic words."""
    marks = "".join(c for i in range(0x10000) if unicodedata.category(c := chr(i))[0] == "M")
    return re.compile(f"(?:[^\\W_]|[{marks}])+")


BEGINNING = 7  # letters of a word that its keys are made of; an edit further back is found all the same
SHORT, LONG = 3, 6  # letters: below the first nothing is corrected, from the second on two edits are allowed
JOINED_MIN = 5


def edits_max(word: str) -> int:
    """Edits allowed for a word of this length. Words with digits are not corrected."""
    if len(word) < SHORT or any(letter.isdigit() for letter in word):
        return 0
    return 1 if len(word) < LONG else 2


def build_spelling_keys(word: str, edits: int | None = None) -> list[str]:
    """Index keys of a word. With fewer `edits`: enough to find words at most that far away."""
    beginning = word[:BEGINNING]
    keys = {beginning}
    for missing in range(1, (edits_max(word) if edits is None else edits) + 1):
        for places in combinations(range(len(beginning)), missing):
            keys.add("".join(letter for place, letter in enumerate(beginning) if place not in places))
    return sorted(keys)


def find_nearest(word: str, known: Mapping[str, int], edits: int | None = None) -> str | None:
    """The most likely known word within `edits`; `known` maps words to frequencies."""
    most = edits_max(word) if edits is None else edits
    best: tuple[int, bool, int, str] | None = None
    for other, uses in known.items():
        apart = distance(word, other, most)
        if apart is not None:
            # Few people get the first letter wrong.
            rank = (apart, word[:1] != other[:1], -uses, other)
            best = rank if best is None else min(best, rank)
    return best[-1] if best else None


def distance(a: str, b: str, edits_max: int) -> int | None:
    """Letters to add, leave out, exchange or swap with a neighbour; None: more than `edits_max`."""
    if abs(len(a) - len(b)) > edits_max:
        return None
    a, b = _strip_common(a, b)
    if len(a) <= 1 >= len(b):  # most near words differ in one letter
        return max(len(a), len(b)) if max(len(a), len(b)) <= edits_max else None
    if edits_max == 1:
        return 1 if len(a) == len(b) == 2 and a == b[::-1] else None
    before: list[int] = []
    last = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        row = [i]
        for j, other in enumerate(b, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == b[j - 2] and a[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > edits_max:
            return None
        before, last = last, row
    return last[-1] if last[-1] <= edits_max else None


def _strip_common(a: str, b: str) -> tuple[str, str]:
    """Two words without their common beginning and end."""
    shorter = min(len(a), len(b))
    start = 0
    while start < shorter and a[start] == b[start]:
        start += 1
    end = 0
    while end < shorter - start and a[-1 - end] == b[-1 - end]:
        end += 1
    return a[start : len(a) - end], b[start : len(b) - end]


def join_neighbours(words: Iterable[str]) -> list[str]:
    """Neighbours written as one: “paperboats” is how some people write “Paper Boats”."""
    return [pair for a, b in pairwise(words) if len(pair := a + b) >= JOINED_MIN]
