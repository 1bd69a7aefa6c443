"""A door: a free show, its tickets, and gates with passes, as the stores see them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.app import App
from holdfast.bookings import BookingState
from holdfast.checkin.offline import OfflineGate, open_pack
from holdfast.checkin.passes import NewPass, Passes
from holdfast.checkin.scan import Verdict, Way
from holdfast.checkin.store import CheckIn
from holdfast.cli.keys import send_in_pods
from holdfast.refunds.errors import SeatsUsed
from holdfast.tickets import IssuedTicket
from holdfast.tickets.transfer import Transfers
from tests.support.show_fixture import Till, a_till, an_owner

_scans = count(1)


@dataclass(frozen=True, slots=True)
class Stand:
    """One gate: an account with a pass."""

    app: App
    account_id: int
    pass_id: int
    gate: str

    async def scans(self, code: str, way: Way = Way.ENTRY, scan_id: str = "") -> CheckIn:
        found, _ = await self.app.checkin.scan(self.account_id, scan_id or a_scan(), way, code)
        return found


@dataclass(frozen=True, slots=True)
class Doorway:
    till: Till

    @property
    def app(self) -> App:
        return self.till.app

    @property
    def passes(self) -> Passes:
        return Passes(self.app.postgres, self.app.accounts)

    @property
    def transfers(self) -> Transfers:
        return self.app.transfers

    async def tickets(self, *seats: int, owner_id: int | None = None) -> list[IssuedTicket]:
        booking = await self.till.opened(*seats, price_minor=0, owner_id=owner_id or an_owner())
        return await self.app.tickets.of_booking(self.till.show, booking.number)

    async def ticket(self, seat: int, **other: Any) -> tuple[IssuedTicket, str]:
        """A ticket and its code."""
        (ticket,) = await self.tickets(seat, **other)
        return ticket, await self.app.tickets.fixed_code(ticket)

    async def again(self, ticket: IssuedTicket) -> IssuedTicket:
        found = await self.app.tickets.find(ticket.show_id, ticket.serial)
        assert found is not None
        return found

    async def stand(self, gate: str = "North", *shows: int, **other: Any) -> Stand:
        now = datetime.now(UTC)
        times = {"starts_at": now - timedelta(hours=1), "ends_at": now + timedelta(hours=5), **other}
        new = NewPass(shows=list(shows) or [self.till.show], gate=gate, **times)
        made, code = await self.passes.make(None, new)
        assert code is not None
        account_id = await self.app.postgres.fetchval(
            "SELECT account_id FROM gate_pass WHERE id = $1", made.pass_id
        )
        return Stand(self.app, account_id, made.pass_id, gate)

    async def offline_gate(self, stand: Stand) -> OfflineGate:
        """What a new device of this gate decides with its pack."""
        device = X25519PrivateKey.generate()
        await self.passes.bind_device(stand.pass_id, device.public_key().public_bytes_raw())
        raw = await self.app.checkin.pack(await self.app.checkin.standby(stand.account_id))
        trusted = {key.key_id: key.public for key in (await self.app.tickets.keys()).values()}
        return OfflineGate(open_pack(raw, device.private_bytes_raw(), trusted))

    async def revoke_keys(self, *, at_every_show: bool = False) -> int:
        """As `holdfast tickets rotate --revoke`: how many owners get new tickets."""
        show_id = None if at_every_show else self.till.show
        sent = await self.app.tickets.revoke_keys(show_id)
        return sent + await send_in_pods(self.app.catalogue_home, show_id)

    async def gives_back(self, ticket: IssuedTicket) -> bool:
        """Refund the whole booking; False: a ticket of it was already admitted."""
        try:
            booking, _ = await self.app.refunds.cancel(await self.till.booking(ticket.number), None)
        except SeatsUsed:
            return False
        assert booking.state is BookingState.REFUNDED
        return True

    async def verdicts(self, ticket: IssuedTicket) -> list[Verdict]:
        rows = await self.app.postgres.fetch(
            "SELECT verdict FROM check_in WHERE show_id = $1 AND serial = $2 ORDER BY id",
            ticket.show_id,
            ticket.serial,
        )
        return [Verdict(row["verdict"]) for row in rows]

    async def facts(self, ticket: IssuedTicket) -> list[str]:
        return [kind for kind in await self.till.facts(ticket.number) if not kind.startswith("booking.")]


async def a_doorway(app: App, seats: int = 50) -> Doorway:
    return Doorway(await a_till(app, seats, price_minor=0, owner_seats_max=50))


def a_scan() -> str:
    return f"scan-{next(_scans)}"
