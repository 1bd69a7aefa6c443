"""Facts of the waitlist. No I/O. fact.py has all the others."""

from datetime import datetime

from holdfast.outbox.body import Body


class WaitlistJoined(Body, frozen=True, kw_only=True):
    """A party waits for seats of a full show."""

    KIND = "waitlist.joined"
    owner_id: int
    entry: int  # number of the party on the show's list
    seats: int


class WaitlistOffered(Body, frozen=True, kw_only=True):
    """Seats that came free are held for a waiting party: the booking of this fact."""

    KIND = "waitlist.offered"
    owner_id: int
    entry: int
    seats: tuple[int, ...]  # numbers in the show's layout
    amount_minor: int
    currency: str
    expires_at: datetime


class WaitlistEnded(Body, frozen=True, kw_only=True):
    """A party no longer waits. After an offer, the fact has its booking."""

    KIND = "waitlist.ended"
    owner_id: int
    entry: int
    state: str  # taken, declined, lapsed, left, timed_out or closed
    seats: tuple[int, ...] = ()  # of the offer
