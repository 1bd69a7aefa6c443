"""Refusals of holding seats. No I/O."""

from holdfast.errors import Refusal, TooManyRequests


class PriceChanged(Refusal):
    """The seats cost another amount than `expected_total_minor`. Nothing was held.

    `total_minor` is what they cost now, `seats` what each of them costs. Show it, and hold again with that.
    """

    code, status, title = "price_changed", 409, "The price has changed"


class SeatsWithdrawn(Refusal):
    """These seats were withdrawn: they are no part of the hall any more, and do not go back to the sale."""

    code, status, title = "seats_withdrawn", 409, "Seats withdrawn from sale"


class TooManyBlocks(Refusal):
    """The show has as many blocks as it may have (`limit`). Release one, or put more seats into one block."""

    code, status, title = "too_many_blocks", 409, "Too many blocks"


class SeatsTaken(Refusal):
    """Another buyer has at least one of these seats. Nothing was held.

    `taken` lists those seats; `alternatives` offers up to three groups of the same size. Hold one of them.
    """

    code, status, title = "seats_taken", 409, "Seats no longer available"


class SoldOut(Refusal):
    """Not enough free seats match the request: too few are left, or none are next to each other.

    `free` is the number of free seats in the show. Request fewer, another category, or allow a split group.
    """

    code, status, title = "sold_out", 409, "Not enough matching seats"


class LeavesOrphan(Refusal):
    """This selection would leave a single free seat that is hard to sell; another selection would not.

    `better` is the nearest such selection: hold that one, or use best available.
    """

    code, status, title = "leaves_orphan", 409, "Selection leaves a single seat"


class OverLimit(Refusal):
    """This would give you more seats in this show than one buyer may have.

    `limit` is the number allowed. Release a hold that you do not need, or request fewer seats.
    """

    code, status, title = "over_limit", 409, "Too many seats for one buyer"


class HoldOpen(Refusal):
    """You have seats of this show on hold already, and a guest can hold seats of a show once at a time.

    Pay for them or release them first. With an account you can hold more.
    """

    code, status, title = "hold_open", 409, "You already hold seats"


class RangeLimit(TooManyRequests):
    """Many seats of this show are on hold in your network without a payment. Nothing was held.

    Sign in with an account whose e-mail address is verified: it does not count for its network. Or try again
    later: unpaid holds end within minutes.
    """

    code, status, title = "range_limit", 429, "Too many unpaid seats in your network"


class CoolDown(TooManyRequests):
    """Too many holds of yours, or of your network, ended without a payment. Nothing was held.

    Try again after the seconds in Retry-After, and hold seats only when you want to pay for them.
    """

    code, status, title = "cool_down", 429, "Too many holds ended unpaid"


class NotOnSale(Refusal):
    """The show is not on sale at the moment.

    `opens_at` and `closes_at` are the times between which it is. The sale opens automatically, on time.
    """

    code, status, title = "not_on_sale", 403, "Not on sale"


class ExtensionCap(Refusal):
    """The hold has been extended as often as allowed. Finish the booking before `expires_at`."""

    code, status, title = "extension_cap", 409, "Hold cannot be extended further"
