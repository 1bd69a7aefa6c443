"""Refusals of the organisers' desk about money.

Refusal
└── FeeTooHigh          422  the fee is more than the cheapest seat costs without its tax
"""

from holdfast.refusals import Refusal


class FeeTooHigh(Refusal):
    """The fee is more than the cheapest seat costs without its tax: nothing would be left for the seat.

    Prices are all-in: the fee is a part of them. `net_minor` is the most it can be. Lower it, or raise the
    price; seats that cost nothing have no fee.
    """

    code, status, title = "fee_too_high", 422, "The fee is more than the seat costs"
