"""Refusals of the waitlist. No I/O."""

from holdfast.errors import Refusal


class SeatsAvailable(Refusal):
    """Seats that fit are on sale now (`seats` has a selection): hold them instead of waiting."""

    code, status, title = "seats_available", 409, "Seats are available"


class AlreadyWaiting(Refusal):
    """You are on the waitlist of this show already, with another wish. Leave it first, then join again."""

    code, status, title = "already_waiting", 409, "Already on the waitlist"


class NoSuchReturn(Refusal):
    """These tickets are not offered to the waitlist, or not any more."""

    code, status, title = "no_such_return", 404, "No such return"


class ReturnSold(Refusal):
    """A party was found for the seats: the price goes back to you, and the tickets are not yours any more."""

    code, status, title = "return_sold", 409, "The tickets are sold"


class NotWaiting(Refusal):
    """You are not on the waitlist of this show. Your entry may have ended: after an offer, or in time."""

    code, status, title = "not_waiting", 404, "Not on the waitlist"


class AddressNotConfirmed(Refusal):
    """An offer is mailed to you and waits a few minutes: confirm your mail address before you join."""

    code, status, title = "address_not_confirmed", 403, "Confirm your mail address first"
