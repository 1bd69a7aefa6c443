"""Words as search knows them: of a title, of a description, of what somebody typed. No I/O.

A letter, a mark or a digit belongs to a word; everything else is between words. PostgreSQL's own parser cuts
Indic words at their vowel signs (they are marks, not letters), so it is never asked: documents and queries
are made of the words found here, and are the same on every server, whatever its locale.

    "L'Été à Chennai"  →  l ete a chennai        case and accents do not matter
    "मॉनसून का गणित"     →  मॉनसून का गणित           vowel signs stay where they are
    "Don't"            →  dont                   an English ending is joined; other apostrophes part words
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import combinations, pairwise

WORD_LETTERS_MAX = 40  # of a longer one the beginning counts
LETTERS_APART = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ı": "i", "ß": "ss"})
# Accents of European letters; the Indic nukta, which half of all people leave out; joiners nobody sees.
ACCENTS = re.compile("[\u0300-\u036f\u093c\u09bc\u0a3c\u0abc\u0b3c\u200b-\u200d\ufeff]")
SPELT_EITHER_WAY = str.maketrans({"ँ": "ं"})  # the nasal dot and the one with its moon
APOSTROPHE = re.compile("(?<=\\w\\w)['’ʼ`](?=(?:s|t|d|m|re|ve|ll)(?:\\W|$))")


def split_words(text: str) -> list[str]:
    """In order, as often as they stand there."""
    return [word[:WORD_LETTERS_MAX] for word in _word().findall(fold(text))]


def fold(text: str) -> str:
    """Without what people leave out when they type: case, accents, joiners."""
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
    """How wrong a word of this length may be. Numbers are meant as they are."""
    if len(word) < SHORT or any(letter.isdigit() for letter in word):
        return 0
    return 1 if len(word) < LONG else 2


def build_spelling_keys(word: str, edits: int | None = None) -> list[str]:
    """What it is kept under. With fewer `edits`: enough to find whatever is as near as that."""
    beginning = word[:BEGINNING]
    keys = {beginning}
    for missing in range(1, (edits_max(word) if edits is None else edits) + 1):
        for places in combinations(range(len(beginning)), missing):
            keys.add("".join(letter for place, letter in enumerate(beginning) if place not in places))
    return sorted(keys)


def find_nearest(word: str, known: Mapping[str, int], edits: int | None = None) -> str | None:
    """The known word (with how often it is used) that was most likely meant, if so few edits lead there."""
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
    a, b = _apart(a, b)
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


def _apart(a: str, b: str) -> tuple[str, str]:
    """What is left of two words between what they have in common at the beginning and at the end."""
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
