"""What a price is made of. No I/O.

    price  =  base  +  fee  +  tax          all-in: seen first, and paid
              └── net ──┘
    tax    =  net · tax_bp                  rounded to the nearest minor unit, half up
    fee    =  fee_minor + base · fee_bp     base rounded the same way, the fee is what is left of the net

In whole minor units, from the price inwards: so the lines always sum to what is paid, and none is negative.
Invariant: of two prices under the same terms, the higher has no smaller base, fee or tax.
"""

from msgspec import Struct

WHOLE_BP = 10_000  # basis points of a whole


class PriceLines(Struct, frozen=True, gc=False):
    """A price of one seat, explained; or the sum of several."""

    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int


def break_down_price(price_minor: int, *, fee_minor: int, fee_bp: int, tax_bp: int) -> PriceLines:
    """The lines of an all-in price. What is free has no fee; a fee larger than the net is the net."""
    tax = _share(price_minor, tax_bp, WHOLE_BP + tax_bp)
    net = price_minor - tax
    base = _share(max(0, net - fee_minor), WHOLE_BP, WHOLE_BP + fee_bp)
    return PriceLines(price_minor, base, net - base, tax)


def net_minor(price_minor: int, tax_bp: int) -> int:
    """What is left of a price when its tax is paid."""
    return price_minor - _share(price_minor, tax_bp, WHOLE_BP + tax_bp)


def _share(amount: int, part: int, whole: int) -> int:
    return (2 * amount * part + whole) // (2 * whole)
