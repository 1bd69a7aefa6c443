"""Refusals of the waitlist. No I/O."""

from holdfast.errors import Refusal


class SeatsAvailable(Refusal):
    """Seats that fit are on sale now (`seats` has a selection): hold them instead of waiting."""

    code, status, title = "seats_available", 409, "Seats are available"


class AlreadyWaiting(Refusal):
    """You are on the waitlist of this show already, with another wish. Leave it first, then join again."""

    code, status, title = "already_waiting", 409, "Already on the waitlist"


class NotWaiting(Refusal):
    """You are not on the waitlist of this show. Your entry may have ended: after an offer, or in time."""

    code, status, title = "not_waiting", 404, "Not on the waitlist"


class AddressNotConfirmed(Refusal):
    """An offer is mailed to you and waits a few minutes: confirm your mail address before you join."""

    code, status, title = "address_not_confirmed", 403, "Confirm your mail address first"
