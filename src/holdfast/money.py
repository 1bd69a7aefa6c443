"""Amounts of money for people. Everywhere else an amount is a whole number of minor units and a currency.

No I/O."""

from decimal import Decimal

# ISO 4217: how many digits of an amount are behind the point. Whatever is not named here has two. Babel's
# figures are for display and differ: by them a dinar of Iraq has no fils, and an amount would be rounded.
_EXPONENTS = {
    0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
    3: "BHD IQD JOD KWD LYD OMR TND",
    4: "CLF UYW",
}
_EXPONENT_OF = {currency: digits for digits, listed in _EXPONENTS.items() for currency in listed.split()}
DEFAULT_EXPONENT = 2
DEFAULT_LOCALE = "en"


def exponent(currency: str) -> int:
    """1500 minor units are 15.00 € and ¥ 1500."""
    return _EXPONENT_OF.get(currency, DEFAULT_EXPONENT)


def to_major(amount_minor: int, currency: str) -> Decimal:
    """The amount as a number of the currency itself, exact, with all its digits: 15.00."""
    return Decimal(amount_minor).scaleb(-exponent(currency))


def format_plain(amount_minor: int, currency: str) -> str:
    """For logs, terminals and files: 15.00 EUR."""
    return f"{to_major(amount_minor, currency):f} {currency}"


def format_money(amount_minor: int, currency: str, locale: str = DEFAULT_LOCALE) -> str:
    """For people, as their language writes it: 15,00 € in `de`, €15.00 in `en`. Never rounded.

    A language nobody knows is told in English: a notice in the wrong language is better than none.
    """
    # Here, not above: 10 MB and a tenth of a second that a process which only sells does not need.
    from babel.core import Locale, UnknownLocaleError
    from babel.numbers import format_currency

    try:
        parsed = Locale.parse(locale.replace("-", "_"))
    except (UnknownLocaleError, ValueError):
        parsed = Locale.parse(DEFAULT_LOCALE)
    number = to_major(amount_minor, currency)
    return format_currency(number, currency, locale=parsed, decimal_quantization=False)
