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
from functools import cache

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
