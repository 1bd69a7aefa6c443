"""A till: one show, and what the ledger says of it. The clock is turned by changing a row's end."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgspec.structs import replace

from holdfast.app import App
from holdfast.audit import audit
from holdfast.bookings import Booking, Bookings, HoldLimits, Opening, OpeningOutcome
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from tests.support import shows as cast
from tests.support.opened import where_sold

_requests = count(1)
_owners = count(7_000_000)


def an_owner() -> int:
    """An owner id that no other test uses."""
    return next(_owners)


@dataclass(frozen=True, slots=True)
class Till:
    app: App
    show: int
    owner: int = field(default_factory=an_owner)

    @property
    def ledger(self) -> Bookings:
        return self.app.bookings

    @property
    def postgres(self) -> Postgres:
        return self.app.postgres

    def opening(self, *seats: int, price_minor: int = 1500, **other: Any) -> Opening:
        request_id = f"request-{next(_requests)}"
        opening = Opening(
            show_id=self.show,
            owner_id=self.owner,
            request_id=request_id,
            body_hash=1,
            claim_id=f"claim-{request_id}",
            note="",
            ttl_ms=600_000,
            claimed_at_s=0.0,  # set when it is opened
            revision=1,
            currency="EUR",
            seats=seats,
            prices=(price_minor,) * len(seats),
        )
        return replace(opening, **other)

    async def open_many(
        self, openings: Sequence[Opening], ledger: Bookings | None = None
    ) -> list[OpeningOutcome]:
        now = time.monotonic()
        return await (ledger or self.ledger).open_many([replace(o, claimed_at_s=now) for o in openings])

    async def open(self, *seats: int, **other: Any) -> OpeningOutcome:
        (answer,) = await self.open_many([self.opening(*seats, **other)])
        return answer

    async def opened(self, *seats: int, **other: Any) -> Booking:
        answer = await self.open(*seats, **other)
        assert isinstance(answer, Booking), answer
        return await self.booking(answer.number)

    async def booking(self, number: int) -> Booking:
        booking = await self.ledger.booking(self.show, number)
        assert booking is not None
        return booking

    async def lapse(self, number: int, ago_ms: int = 1000) -> None:
        """Its time passed a second ago; or, if that is negative, it passes soon."""
        await self.postgres.execute(
            "UPDATE booking SET expires_at = now() - $3 * interval '1 ms' WHERE show_id = $1 AND number = $2",
            self.show,
            number,
            ago_ms,
        )

    async def taken(self) -> dict[int, int]:
        """Seat -> number of the booking that has it."""
        rows = await self.postgres.fetch("SELECT seat, number FROM taken_seat WHERE show_id = $1", self.show)
        return {row["seat"]: row["number"] for row in rows}

    async def rows(self) -> int:
        return int(await self.postgres.fetchval("SELECT count(*) FROM booking WHERE show_id = $1", self.show))

    async def counted(self, owner: int | None = None) -> int:
        counted = await self.postgres.fetchval(
            "SELECT seats FROM owner_count WHERE show_id = $1 AND owner_id = $2",
            self.show,
            owner or self.owner,
        )
        return int(counted or 0)

    async def moves(self, number: int) -> list[tuple[str, str]]:
        """(move, state after it), in order."""
        rows = await self.postgres.fetch(
            "SELECT move, state::text AS state FROM booking_move WHERE show_id = $1 AND number = $2"
            " ORDER BY id",
            self.show,
            number,
        )
        return [(row["move"], row["state"]) for row in rows]

    async def facts(self, number: int) -> list[str]:
        rows = await self.postgres.fetch(
            "SELECT kind FROM outbox WHERE show_id = $1 AND number = $2 ORDER BY id", self.show, number
        )
        return [row["kind"] for row in rows]

    async def violations(self) -> list[str]:
        """What an audit finds wrong with this show."""
        report = await audit(self.postgres, self.ledger)
        return [f"{v.check}: {v.what}" for v in report.violations if v.show_id == self.show]


async def a_till(app: App, seats: int = 50, **terms: Any) -> Till:
    return Till(app, await cast.a_show(app, seats, **terms))


def other_ledger(app: App) -> tuple[Postgres, Bookings]:
    """The ledger as another process has it: a pool and batches of its own. Close the pool."""
    postgres = Postgres(where_sold(app.config).database_url, pool_max=4, timeout_s=10)
    return postgres, Bookings(postgres, HoldLimits.from_config(Config()), batch_max=128, waiting_max=1000)
