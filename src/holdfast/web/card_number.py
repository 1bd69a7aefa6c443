"""No card number comes in, and none gets into the log.

A card number is 13 to 19 digits whose last one fits the others (Luhn), in one piece or in groups with blanks
or dashes between them. Digits that are part of a word, a hash or a fraction are none, nor are two dates,
nor what stands before the @ of an e-mail address: its owner has no other.
Such requests are refused before the body is parsed, stored or logged: buyers give cards to the gateway only.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from holdfast.errors import Refusal

DIGITS_MIN, DIGITS_MAX = 13, 19
GROUP_MIN = 3  # digits of a group, but for the last: cards are written 4-4-4-4 or 4-6-5, dates are not
TRIES_MAX = 1000  # one in ten fits by chance: a text with more to try has one, and costs no more than this
# A text without this has no card number, and nearly no text has it: most requests pay for this search alone.
find_long_number = re.compile(rb"[0-9](?:[ -]*[0-9]){12}").search
RUN = re.compile(r"(?<![0-9A-Za-z_.])[0-9]+(?:[ -]+[0-9]+)*(?![0-9A-Za-z_@])(?!\.[0-9])")
GROUP = re.compile(r"[0-9]+")
DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
INSTEAD = "[card number]"


class CardNumber(Refusal):
    """The request contains a card number. It was neither stored nor logged.

    Card numbers go to the payment gateway alone: pay with the token that it gives you for the card.
    """

    code, status, title = "card_number", 422, "Card numbers are not accepted"


def refuse_card_numbers(sent: bytes) -> None:
    """A body in JSON in which `find_long_number` found one. A body that is not JSON is searched as text."""
    try:
        value = msgspec.json.decode(sent)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = sent.decode("latin-1")
    if without_card_numbers(value) != value:
        raise CardNumber


def refuse_card_number_in_query(sent: bytes) -> None:
    if has_card_number(unquote_plus(sent.decode("latin-1"))):
        raise CardNumber


def has_card_number(text: str) -> bool:
    return next(_spans(text), None) is not None


def without_card_numbers(value: Any) -> Any:
    """The same with words instead: a text, a number, or whatever JSON makes of them."""
    match value:
        case str():
            return _redacted(value)
        case bool():
            return value
        case int():
            return INSTEAD if has_card_number(str(value)) else value
        case dict():
            return {without_card_numbers(name): without_card_numbers(part) for name, part in value.items()}
        case list():
            return [without_card_numbers(part) for part in value]
    return value


def _redacted(text: str) -> str:
    for start, end in reversed(list(_spans(text))):
        text = text[:start] + INSTEAD + text[end:]
    return text


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Where the card numbers are, in order; they do not overlap."""
    tries = 0
    for run in RUN.finditer(text):
        if len(run[0]) < DIGITS_MIN:
            continue
        groups = [(run.start() + g.start(), run.start() + g.end()) for g in GROUP.finditer(run[0])]
        if run[0] == text.strip() and is_card_number("".join(GROUP.findall(run[0]))):
            yield run.span()  # nothing else in it: then the groups may be as they like
            return
        first = 0
        while first < len(groups):
            length = 0
            for digits in _candidates(text, groups[first : first + DIGITS_MAX]):
                tries += 1
                if is_card_number("".join(digits)) or tries > TRIES_MAX:
                    length = len(digits)
                    break
            if length:
                yield groups[first][0], groups[first + length - 1][1]
            first += length or 1


def _candidates(text: str, groups: list[tuple[int, int]]) -> Iterator[list[str]]:
    """The first group, or several from the first on, where they have as many digits as a card."""
    digits: list[str] = []
    for start, end in groups:
        digits.append(text[start:end])
        count = sum(map(len, digits))
        if count > DIGITS_MAX:
            return
        if count >= DIGITS_MIN:
            yield digits
        if end - start < GROUP_MIN:
            return


def is_card_number(digits: str) -> bool:
    """13 to 19 digits, by Luhn's sum. All zeros have a valid sum, and are not a card."""
    if not DIGITS_MIN <= len(digits) <= DIGITS_MAX:
        return False
    numbers = [int(digit) for digit in reversed(digits)]
    total = sum(numbers[::2]) + sum(DOUBLED[number] for number in numbers[1::2])
    return total % 10 == 0 and total > 0
