"""Drivers as units of a claim pool: the only module of the dispatch that uses `holdfast.claim`.

Driver 41 is unit 41. An offer is a claim on one unit, with the offer's id as the claim's id and the ride as
its owner. The ledger decides for good; this pool makes sure that hundreds of workers do not find that out by
asking PostgreSQL about the same nearest driver.
"""

from examples.dispatch.ledger import Ledger, Offer, WaitingRide
from holdfast.claim import Claim, Claimed, Contents, EngineDown, Pool, Pools

POOL_ID = "drivers"


class DriverPool:
    def __init__(self, pools: Pools, ledger: Ledger, size: int, *, margin_s: float) -> None:
        self._pools = pools
        self._ledger = ledger
        self._size = size
        self._margin_s = margin_s  # how much longer a claim is than its offer
        self._pool: Pool | None = None

    async def open(self) -> Pool:
        """At the first use, so that a worker starts without Valkey, too. Raises EngineDown."""
        self._pool = self._pool or await self._pools.open(POOL_ID, size=self._size, load=self.load)
        return self._pool

    async def load(self) -> Contents:
        """After Valkey lost its data: drivers with an offer or a ride, as the ledger has them."""
        rows = await self._ledger.read_live_offers()
        return Contents(
            committed=[claim_for(row) for row in rows if row.is_accepted],
            live=[(claim_for(row), row.left_s + self._margin_s) for row in rows if not row.is_accepted],
        )

    async def claim(self, ride: WaitingRide, driver_id: int, *, offer_s: float) -> int | None:
        """The driver that the ride may be offered to; None: this one is taken.

        It may be another driver than the one named: if a worker claimed one and died before it wrote the
        offer, the same claim id returns the same claim, and the next worker goes on from there.
        """
        try:
            pool = await self.open()
            outcome = await pool.claim(
                [driver_id],
                owner=ride.ride_id,
                ttl_s=offer_s + self._margin_s,
                claim_id=ride.next_offer_id,
            )
        except EngineDown:
            return driver_id  # without Valkey the keys of the ledger decide alone: slower, and as safe
        match outcome:
            case Claimed(claim):
                return claim.units[0]
            case _:
                return None

    async def release(self, offer: Offer) -> None:
        """Declined, lapsed, or refused by the ledger. If Valkey does not get it, the claim ends by itself."""
        try:
            await (await self.open()).release(claim_for(offer))
        except EngineDown:
            return

    async def copy(self, offer: Offer, *, has_ended: bool) -> None:
        """The driver is on the ride; or is free again, because it has ended. Raises EngineDown."""
        pool = await self.open()
        if has_ended:
            await pool.free(claim_for(offer))
        else:
            await pool.commit(claim_for(offer))


def claim_for(offer: Offer) -> Claim:
    return Claim(offer.offer_id, offer.ride_id, (offer.driver_id,))
