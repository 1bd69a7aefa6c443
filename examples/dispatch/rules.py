"""Times and limits of the dispatch, each with its reason. No I/O."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Rules:
    offer_s: float = 15.0  # a driver may look at an offer for this long
    patience_s: float = 90.0  # a rider who has waited this long without an offer gets "no driver"
    rings_max: int = 6  # candidates are at most this many cells away: about 5 km
    lease_s: float = 3.0  # the rides of a worker that died are taken over after this time
    refresh_s: float = 0.25  # between two reads of where the drivers are; the claim decides, not this view
    retry_s: float = 0.25  # a ride without a candidate searches again after this time
    poll_s: float = 0.03  # between two looks for answers: one query for all offers of a worker
    rides_max: int = 400  # that a worker matches at once; the others wait in the ledger

    # The claim outlives the row of its offer, so that an answer in the last moment is copied in time.
    claim_margin_s: float = 1.0
    claims_per_search_max: int = 12  # a crowd around one station must not try every driver of the city
