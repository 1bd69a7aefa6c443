"""What makes offers: a consumer of facts, and a job that looks for work. Either alone suffices."""

from collections.abc import Sequence

import structlog

from holdfast.engines.errors import EngineDown
from holdfast.engines.postgres import Postgres, Queries
from holdfast.outbox import Consumer, Fact
from holdfast.waitlist.offers import OfferSteps

Q = Queries("holdfast.waitlist")
log = structlog.get_logger(__name__)

WAITLISTS_DUE = Q.is_due
GROUP = "waitlist"
POLL_PAUSE_S = 1.0
SHOWS_MAX = 200  # in one go
# Facts after which seats may be reserved, or an offer has ended.
KINDS = (
    *("booking.expired", "booking.cancelled", "booking.refunded", "booking.reduced", "booking.confirmed"),
    *("booking.failed", "show.cancelled"),
)


class WaitlistJobs:
    def __init__(self, postgres: Postgres, steps: OfferSteps, idle_s: int) -> None:
        self._postgres = postgres
        self._steps = steps
        self._idle_s = idle_s
        self._after = 0

    async def poll(self) -> int:
        """Run the step of every show that needs it; returns how much changed."""
        rows = await self._postgres.fetch(Q.due, self._after, SHOWS_MAX, self._idle_s)
        self._after = rows[-1]["show_id"] if len(rows) == SHOWS_MAX else 0
        changed = 0
        for row in rows:
            try:
                changed += await self._steps.run(row["show_id"])
            except EngineDown:
                raise
            except Exception as error:  # one broken show must not stop the offers of the others
                log.error("cannot make offers", show_id=row["show_id"], error=repr(error))
        return changed


def consumer(postgres: Postgres, steps: OfferSteps) -> Consumer:
    async def make_offers(facts: Sequence[Fact]) -> None:
        shows = sorted({fact.show_id for fact in facts})
        for row in await postgres.fetch(Q.live_among, shows):
            await steps.run(row["show_id"])

    # Not from the oldest: seats of before are found by the job.
    return Consumer(group=GROUP, kinds=KINDS, call_many=make_offers, from_oldest=False)
