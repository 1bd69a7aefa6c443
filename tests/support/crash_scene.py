"""One booking, one order to die, and what must be true when it is over."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from holdfast.bookings import from_public_id
from tests.support.box_office import Office, number_in
from tests.support.gateway_state import Bank, Taken
from tests.support.retrying_payer import Payer
from tests.support.shows import Fan
from tests.support.wait import until

DIES_WITHIN_S = 30.0
UP_WITHIN_S = 60.0
OVER_WITHIN_S = 30.0
HURRY_S = 1.0
SERVERS, WORKERS = ("web-1", "web-2"), ("work-1", "work-2")

PAYMENTS = "SELECT * FROM payment WHERE show_id = $1 AND number = $2 ORDER BY attempt"
REFUNDS = "SELECT * FROM refund WHERE show_id = $1 AND number = $2"
BOOKING = "SELECT * FROM booking WHERE show_id = $1 AND number = $2"
# Leases of dead processes and pauses between tries are not awaited: the clock is turned.
HURRY = (
    "UPDATE payment SET due_at = now() WHERE show_id = $1 AND due_at > now()",
    "UPDATE refund SET due_at = now() WHERE show_id = $1 AND due_at > now()",
    "UPDATE gateway_webhook SET due_at = now() WHERE show_id = $1 AND due_at > now()",
)
REST = "UPDATE payment SET due_at = now() + interval '5 min' WHERE show_id = $1 AND due_at IS NOT NULL"
HURRY_WATCHED = "UPDATE payment SET due_at = now() WHERE show_id = $1 AND step = 'watch' AND due_at > now()"
UNDER_WAY = """
SELECT (SELECT count(*) FROM payment WHERE show_id = $1 AND due_at IS NOT NULL)
     + (SELECT count(*) FROM refund WHERE show_id = $1 AND state = 'requested')
"""
DEADLINE = """
WITH turned AS (
    UPDATE payment SET deadline_at = now() - $3 * interval '1 s', due_at = now()
     WHERE show_id = $1 AND number = $2 AND due_at IS NOT NULL
)
UPDATE booking SET expires_at = now() - $3 * interval '1 s' WHERE show_id = $1 AND number = $2
"""


@dataclass
class Scene:
    office: Office
    bank: Bank
    orders: Path  # HOLDFAST_CRASH_AT
    point: str
    show_id: int
    payer: Payer
    rival: Payer
    admin: Fan
    began_s: float = field(default_factory=time.time)
    alive: dict[int, str] = field(default_factory=dict)  # processes that were seen since it was armed
    died: str = ""  # name of the process
    _watching: asyncio.Task[None] | None = None

    async def up(self) -> None:
        """At least one web process and one worker run; the others may still be starting."""

        async def is_so() -> bool:
            return all(any(is_up(self.office, name) for name in names) for names in (SERVERS, WORKERS))

        await until(is_so, within_s=UP_WITHIN_S)

    def arm(self) -> None:
        """From here on, a process that reaches the point dies."""
        self._look()
        draft = self.orders.with_suffix(".draft")
        draft.write_text(self.point)
        draft.rename(self.orders)
        self._watching = asyncio.create_task(self._watch())

    async def death(self) -> None:
        """A process has died at the point, and its leases are released."""
        assert self._watching is not None
        await self._watching
        assert self.died, f"no process reached {self.point}"

    async def _watch(self) -> None:
        give_up_at = time.monotonic() + DIES_WITHIN_S
        while not self.died and time.monotonic() < give_up_at:
            with suppress(TimeoutError):
                await until(self._a_process_is_gone, within_s=HURRY_S)
            if not self.died:
                await self.office.app.postgres.execute(HURRY_WATCHED, self.show_id)
        self.orders.unlink(missing_ok=True)
        await self.hurry()

    async def _a_process_is_gone(self) -> bool:
        if self.orders.exists():
            self._look()
            return False
        gone = [name for process_id, name in self.alive.items() if not is_alive(process_id)]
        self.died = gone[0] if gone else ""
        return bool(gone)

    def _look(self) -> None:
        """Also at those that were still starting when it was armed."""
        ids = {self.office.process_id(name): name for name in SERVERS + WORKERS}
        self.alive |= {process_id: name for process_id, name in ids.items() if is_alive(process_id)}

    async def hurry(self) -> None:
        for sql in HURRY:
            await self.office.app.postgres.execute(sql, self.show_id)

    async def rest(self) -> None:
        """No job looks at the payment by itself."""
        await self.office.app.postgres.execute(REST, self.show_id)

    async def deadline(self, booking: str, ago_s: int = 1) -> None:
        """It has passed."""
        await self.office.app.postgres.execute(DEADLINE, *from_public_id(booking), ago_s)

    async def becomes(self, booking: str, *states: str) -> None:
        async def is_so() -> bool:
            return (await self.booking(booking))["state"] in states

        await self.patiently(is_so)

    async def over(self) -> None:
        """Nothing of this show is under way any more."""

        async def is_over() -> bool:
            return not await self.office.app.postgres.fetchval(UNDER_WAY, self.show_id)

        await self.patiently(is_over)

    async def patiently(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        give_up_at = time.monotonic() + OVER_WITHIN_S
        while True:
            with suppress(TimeoutError):
                await until(is_so, within_s=HURRY_S)
                return
            assert time.monotonic() < give_up_at, f"{self.point}: it does not come to an end"
            await self.hurry()

    async def booking(self, booking: str) -> Any:
        return await self.office.app.postgres.fetchrow(BOOKING, *from_public_id(booking))

    async def payments(self, booking: str) -> list[Any]:
        return await self.office.app.postgres.fetch(PAYMENTS, *from_public_id(booking))

    async def taken(self, booking: str) -> list[Taken]:
        return await self.bank.of(booking, self.began_s - 1)

    async def assert_one_outcome(self, booking: str, expected: str) -> None:
        """Confirmed and paid for once, or not confirmed and refunded in full; the buyer is shown the same."""
        row, payments = await self.booking(booking), await self.payments(booking)
        taken = [one for one in await self.taken(booking) if one.is_captured]
        retained = [one.retained_minor for one in taken if one.retained_minor]
        what = (self.point, row["state"], [(p["key"], p["step"]) for p in payments], taken)
        assert row["state"] == expected, what
        assert retained == ([row["amount_minor"]] if expected == "confirmed" else []), what
        paid = [payment for payment in payments if payment["step"] == "paid"]
        assert len(paid) == (expected in ("confirmed", "refunded")), what
        returned = [payment for payment in payments if payment["step"] == "returned"]
        assert len(taken) == len(paid) + len(returned), what
        refunds = await self.office.app.postgres.fetch(REFUNDS, *from_public_id(booking))
        assert all(refund["state"] == "done" for refund in refunds), (what, refunds)
        assert await self.payer.state_of(booking) == expected, what

    async def assert_answered(self, answer: httpx2.Response, booking: str) -> None:
        """The same question once more, whatever the first answer was lost with, gets what is true."""
        row = await self.booking(booking)
        if answer.status_code == 200:
            assert row["state"] in ("confirmed", "refunded"), (self.point, answer.text)
        else:
            assert row["state"] != "confirmed", (self.point, answer.text)


def is_up(office: Office, name: str) -> bool:
    process_id = office.process_id(name)
    return number_in(office.folder.run / f"{name}.ready") == process_id and is_alive(process_id)


def is_alive(process_id: int) -> bool:
    """A zombie is not: its parent has not reaped it yet."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
