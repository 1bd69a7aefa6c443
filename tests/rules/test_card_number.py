"""Card numbers, and numbers that only look like one."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.card_number import (
    INSTEAD,
    CardNumber,
    find_long_number,
    has_card_number,
    is_card_number,
    refuse_card_numbers,
    without_card_numbers,
)

# Numbers that the schemes give out for tests: Visa, Mastercard, Amex, Diners, Discover, JCB, UnionPay …
CARDS = ["4111111111111111", "5555555555554444", "378282246310005", "30569309025904", "6011111111111117"]
CARDS += ["3530111333300000", "6205500000000000004", "4222222222222", "6759649826438453"]


@pytest.mark.parametrize("card", CARDS)
def test_cards_are_found_however_they_are_written(card: str) -> None:
    groups = [card[i : i + 4] for i in range(0, len(card), 4)]
    for text in (card, " ".join(groups), "-".join(groups), "  ".join(groups), f"my card is {card}, thanks."):
        assert has_card_number(text), text
        assert card[:6] not in without_card_numbers(text)


@pytest.mark.parametrize(
    "text", ["4111 1111 1111 1111 12/27", "2027 4111111111111111", "1 4111 1111 1111 1111"]
)
def test_cards_are_found_among_other_numbers(text: str) -> None:
    assert has_card_number(text)


@pytest.mark.parametrize("card", CARDS)
def test_an_extra_or_changed_digit_is_not_a_card_number(card: str) -> None:
    other = card[:-1] + str((int(card[-1]) + 1) % 10)

    assert not has_card_number(other)
    assert not has_card_number("4" * (20 - len(card)) + card)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0000000000000000",
        "x4111111111111111",
        "s449162210377-5",
        "4111111111111111x",
        "a_4111111111111111",
        "3.4111111111111111",
        "4111111111111111.5",
        "2026-11-16 2026-11-17",
        "2031-05-01T19:30:00Z",
        "5f3c9a52-6d0b-4f7e-9d1c-2f1f4b8f7c11",
        "41111111111111111111",
        "4111,1111,1111,1111",
        "4111111111111111@example.org",
        "guest-4111111111111111@example.org",
        "A-1 A-2 A-3 A-4 A-5 A-6 A-7 A-8 A-9 A-10",
    ],
)
def test_lookalikes_are_not_card_numbers(text: str) -> None:
    assert not has_card_number(text)


@pytest.mark.parametrize(
    "body",
    [
        b'{"a": "4111111111111111"}',
        b'{"a": 4111111111111111}',
        b'{"4111111111111111": 1}',
        b'{"a": [{"b": "line\\n4111-1111-1111-1111"}]}',
        b'{"a": "4111 1111 1111 1111"',
        b"\xff 4111111111111111",
        b'{"a":' * 5000 + b"4111111111111111",
    ],
    ids=lambda body: str(body)[:40],
)
def test_bodies_with_one_are_refused_whether_they_are_json_or_not(body: bytes) -> None:
    with pytest.raises(CardNumber):
        refuse_card_numbers(body)


def test_bodies_that_cost_much_to_look_through_are_refused_early() -> None:
    with pytest.raises(CardNumber):
        refuse_card_numbers(msgspec.json.encode("1111-2222-3333-4440 " * 3000))


digits = st.text("0123456789", min_size=1, max_size=22)


@given(st.lists(digits, min_size=1, max_size=4), st.sampled_from(["", " ", "-"]))
def test_the_quick_check_misses_no_card_number(parts: list[str], between: str) -> None:
    text = between.join(parts)

    assert find_long_number(text.encode()) is not None or not has_card_number(text)


@given(st.integers(10**11, 10**18 - 1))
def test_every_number_has_one_last_digit_that_fits(stem: int) -> None:
    assert [is_card_number(f"{stem}{last}") for last in range(10)].count(True) == 1


@given(st.text("0123456789 -x.", max_size=60))
def test_redacted_digits_do_not_remain(text: str) -> None:
    once = without_card_numbers(text)

    assert not has_card_number(once)
    assert has_card_number(text) == (once != text) == (INSTEAD in once)


def test_other_text_is_unchanged() -> None:
    line = {"took_ms": 12.5, "count": 3, "is_new": True, "path": "/shows/7", "none": None, "list": [1, "two"]}

    assert without_card_numbers(line) == line
