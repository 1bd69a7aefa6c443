"""How a price is composed of base, fee and tax. No I/O.

    price  =  base  +  fee  +  tax          the total: displayed first, and paid
              └── net ──┘
    tax    =  net · tax_bp                  rounded to the nearest minor unit, half up
    fee    =  fee_minor + base · fee_bp     base rounded the same way, the fee is the rest of the net

Computed in whole minor units, starting from the price, so the lines always add up to the amount paid and none
is negative. Invariant: of two prices under the same terms, the higher has no smaller base, fee or tax.
"""

from msgspec import Struct

WHOLE_BP = 10_000  # basis points of a whole


class PriceLines(Struct, frozen=True, gc=False):
    """The parts of the price of one seat, or of the sum of several."""

    price_minor: int
    base_minor: int
    fee_minor: int
    tax_minor: int


def break_down_price(price_minor: int, *, fee_minor: int, fee_bp: int, tax_bp: int) -> PriceLines:
    """Split a total price. A free seat has no fee; the fee is limited to the net."""
    tax = _share(price_minor, tax_bp, WHOLE_BP + tax_bp)
    net = price_minor - tax
    base = _share(max(0, net - fee_minor), WHOLE_BP, WHOLE_BP + fee_bp)
    return PriceLines(price_minor, base, net - base, tax)


def net_minor(price_minor: int, tax_bp: int) -> int:
    """The price without its tax."""
    return price_minor - _share(price_minor, tax_bp, WHOLE_BP + tax_bp)


def _share(amount: int, part: int, whole: int) -> int:
    return (2 * amount * part + whole) // (2 * whole)
