"""The waitlist of a full show: parties wait, freed seats are offered to them in order (R26).

matching.py   which reserved seats fit a party
offers.py     the step that makes offers and ends them
store.py      entries and offers in PostgreSQL
"""

from holdfast.waitlist.entry import (
    LIVE,
    SEATS_MAX,
    EntryPage,
    EntryState,
    JoinBody,
    OfferPage,
    PartiesQuery,
    WaitlistPage,
)
from holdfast.waitlist.errors import AddressNotConfirmed, SeatsAvailable
from holdfast.waitlist.offers import OfferSteps
from holdfast.waitlist.service import Waitlists
from holdfast.waitlist.store import WaitlistStore

__all__ = [
    "LIVE",
    "SEATS_MAX",
    "AddressNotConfirmed",
    "EntryPage",
    "EntryState",
    "JoinBody",
    "OfferPage",
    "OfferSteps",
    "PartiesQuery",
    "SeatsAvailable",
    "WaitlistPage",
    "WaitlistStore",
    "Waitlists",
]
