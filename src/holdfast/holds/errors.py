"""Refusals of the sale. No I/O.

Refusal
├── PriceChanged        409  the seats cost another amount than the caller said; carries what they cost
├── SeatsWithdrawn      409  the seats are no part of the hall any more
└── TooManyBlocks       409  the show has as many blocks as it may
"""

from holdfast.errors import Refusal


class PriceChanged(Refusal):
    """The seats cost another amount than `expected_total_minor`. Nothing was held.

    `total_minor` is what they cost now, `seats` what each of them costs. Show it, and hold again with that.
    """

    code, status, title = "price_changed", 409, "The price is another one now"


class SeatsWithdrawn(Refusal):
    """These seats were withdrawn: they are no part of the hall any more, and do not go back to the sale."""

    code, status, title = "seats_withdrawn", 409, "The seats are gone for good"


class TooManyBlocks(Refusal):
    """The show has as many blocks as it may have (`limit`). Release one, or put more seats into one block."""

    code, status, title = "too_many_blocks", 409, "Too many blocks"
