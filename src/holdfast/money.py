"""Formats amounts of money. Everywhere else an amount is a whole number of minor units and a currency.

No I/O.
"""

from decimal import Decimal

# ISO 4217: digits after the decimal point; currencies not listed have two. Babel's figures are for display
# and differ: its Iraqi dinar has no fils, so an amount would be rounded.
_EXPONENTS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_EXPONENT_OF = {currency: digits for digits, listed in _EXPONENTS.items() for currency in listed.split()}
DEFAULT_EXPONENT = 2
DEFAULT_LOCALE = "en"


def exponent(currency: str) -> int:
    """Digits after the decimal point: 1500 minor units are 15.00 € but ¥ 1500."""
    return _EXPONENT_OF.get(currency, DEFAULT_EXPONENT)


def to_major(amount_minor: int, currency: str) -> Decimal:
    """The exact amount in major units, with all its digits: 15.00."""
    return Decimal(amount_minor).scaleb(-exponent(currency))


def format_plain(amount_minor: int, currency: str) -> str:
    """For logs, terminals and files: 15.00 EUR."""
    return f"{to_major(amount_minor, currency):f} {currency}"


def format_money(amount_minor: int, currency: str, locale: str = DEFAULT_LOCALE) -> str:
    """In the notation of a locale: 15,00 € in `de`, €15.00 in `en`. Never rounded.

    An unknown locale falls back to English: a notice in the wrong language is better than none.
    """
    # Imported lazily: Babel takes 10 MB and a tenth of a second, which a selling process does not need.
    from babel.core import Locale, UnknownLocaleError
    from babel.numbers import format_currency

    try:
        parsed = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        parsed = Locale.parse(DEFAULT_LOCALE)
    number = to_major(amount_minor, currency)
    return format_currency(number, currency, locale=parsed, decimal_quantization=False)
