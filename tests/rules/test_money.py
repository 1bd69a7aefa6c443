"""Amounts as people read them, in any currency and language: always exact."""

import re
import subprocess
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from holdfast.money import exponent, format_money, format_plain, to_major

currencies = some.sampled_from(["EUR", "INR", "GBP", "JPY", "KWD", "IQD", "CLF", "KRW"])


@pytest.mark.parametrize(
    ("currency", "digits"), [("EUR", 2), ("INR", 2), ("JPY", 0), ("KWD", 3), ("IQD", 3), ("CLF", 4)]
)
def test_a_currency_has_the_digits_of_iso_4217(currency: str, digits: int) -> None:
    assert exponent(currency) == digits


@pytest.mark.parametrize(
    ("amount", "currency", "locale", "formatted"),
    [
        (1550, "EUR", "en", "€15.50"),
        (1550, "EUR", "de", "15,50\xa0€"),
        (12_345_678, "INR", "en-IN", "₹1,23,456.78"),
        (1900, "JPY", "en", "¥1,900"),
        (1234, "KWD", "en", "KWD1.234"),
        (1234, "IQD", "en", "IQD1.234"),  # a language may show no fils; what is charged is shown
        (0, "GBP", "en_GB", "£0.00"),
        (-1550, "EUR", "en", "-€15.50"),
    ],
)
def test_an_amount_is_spelt_as_its_reader_writes_it(
    amount: int, currency: str, locale: str, formatted: str
) -> None:
    assert format_money(amount, currency, locale) == formatted


@pytest.mark.parametrize("locale", ["tlh", "", "??", "de_XX_nonsense-1", "../../etc/passwd"])
def test_an_unknown_locale_falls_back_to_english(locale: str) -> None:
    assert format_money(1550, "EUR", locale) == "€15.50"


@given(some.integers(0, 10**15), currencies)
def test_formatting_an_amount_loses_no_digit(amount: int, currency: str) -> None:
    formatted = re.sub(r"[^0-9.]", "", format_money(amount, currency, "en"))

    assert Decimal(formatted) == to_major(amount, currency)
    assert format_plain(amount, currency) == f"{to_major(amount, currency):f} {currency}"


def test_the_sale_does_not_load_all_locales() -> None:
    code = "import sys, holdfast.holds, holdfast.money; print('babel' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
