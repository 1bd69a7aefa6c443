"""The only file in tickets/ that reads the ledger's tickets: keys, codes, phones, sending again."""

import hashlib
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.bookings import Booking
from holdfast.catalogue import Catalogue
from holdfast.engines.cache import Cache
from holdfast.engines.errors import OperatorError
from holdfast.engines.postgres import Postgres, Queries, Transaction
from holdfast.tickets.calendar import calendar_file
from holdfast.tickets.errors import BadCode, NoSuchTicket, ResendMax
from holdfast.tickets.fonts import Printer
from holdfast.tickets.issued import Codes, IssuedTicket, TicketShow, build_printed_ticket
from holdfast.tickets.texts import DEFAULT_LOCALE
from holdfast.tickets.texts_files import texts_for
from holdfast.tickets.ticket import (
    SECRET_BYTES,
    Code,
    TicketKey,
    build_link,
    fixed_code,
    is_live,
    live_code,
    phone_secret,
    read_code,
    read_link,
    show_secret,
    signing_key,
)
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.tickets")
T = TypeVar("T")

KEYS_FRESH_S = 30.0
OCCASION_FRESH_S = 1.0
KEYS_RETRY_S = (
    1.0  # a code may name a key we have not read yet; a stranger's may name any, as often as they like
)
KEYS_MAX = 255  # a byte of every code says which
KEY_KNOWN_AFTER_S = 120  # every process has read a new key by then
RESENDS_AN_HOUR_MAX = 5
LISTED_MAX = 100


@dataclass(frozen=True, slots=True)
class EntryPolicy:
    """How a show's tickets are checked."""

    codes: Codes = Codes.FIXED
    reentry: bool = True


class Tickets:
    def __init__(
        self, postgres: Postgres, catalogue: Catalogue, *, wall: Callable[[], float] = time.time
    ) -> None:
        self._postgres = postgres
        self._catalogue = catalogue
        self._wall = wall
        self.printer = Printer()
        self._occasions: Cache[int, TicketShow] = Cache(
            self.occasion, fresh_s=OCCASION_FRESH_S, stale_max_s=OCCASION_FRESH_S
        )
        self._keys: dict[int, TicketKey] = {}
        self._public: dict[int, bytes] = {}
        self._trusted: dict[int, bytes] = {}
        self._read_at = -KEYS_FRESH_S

    async def open(self) -> None:
        """Make the first key if there is none."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock_ticket_keys)
            if not await tx.fetch(Q.ticket_keys):
                await tx.execute(Q.add_ticket_key, *_new_key(), 0)
        await self._read_keys()

    def close(self) -> None:
        self.printer.close()

    async def rotate_key(self) -> None:
        """A new key. It signs once every process knows it; what older ones have signed stays good."""
        async with self._postgres.transaction() as tx:
            await self._add_key(tx, known_after_s=KEY_KNOWN_AFTER_S)
            await record(tx, AuditEntry(action="ticket_key.rotated", subject=("ticket_key", "new")))
        await self._read_keys()

    async def revoke_keys(self, show_id: int | None) -> int:
        """A new key; codes and links of older ones are refused at this show, or at every one (None).

        The owners of tickets for shows to come get theirs again: how many were notified.
        """
        if show_id is not None:
            await self._catalogue.show_detail(show_id)
        async with self._postgres.transaction() as tx:
            await self._add_key(tx, known_after_s=0)
            await tx.execute(Q.revoke_ticket_keys, show_id or 0)
            sent = await tx.fetch(Q.send_reissued, show_id or 0)
            subject = ("show", show_id) if show_id is not None else ("ticket_key", "all")
            await record(tx, AuditEntry(action="ticket_keys.revoked", subject=subject, show_id=show_id))
        await self._read_keys()
        return len(sent)

    async def send_reissued(self, show_id: int | None) -> int:
        """In a pod, after a new key has arrived there: owners of tickets get theirs again. How many."""
        async with self._postgres.transaction() as tx:
            sent = await tx.fetch(Q.send_reissued, show_id or 0)
        return len(sent)

    async def newest_key(self) -> int:
        """As the database has it now: the highest number."""
        await self._read_keys()
        return max(self._keys)

    async def _add_key(self, tx: Transaction, *, known_after_s: float) -> None:
        await tx.execute(Q.lock_ticket_keys)
        if len(await tx.fetch(Q.ticket_keys)) >= KEYS_MAX:
            raise OperatorError(f"there have been {KEYS_MAX} keys, and a ticket has room for no more of them")
        await tx.execute(Q.add_ticket_key, *_new_key(), known_after_s)

    async def keys(self) -> dict[int, TicketKey]:
        if time.monotonic() - self._read_at > KEYS_FRESH_S:
            await self._read_keys()
        return self._keys

    async def signing_key(self) -> TicketKey:
        return signing_key(await self.keys(), self._wall())

    async def _key_for(self, ticket: IssuedTicket) -> TicketKey:
        """The key that signs it now. Its row shows a revocation before this process has read the new key."""
        key = await self.signing_key()
        if key.key_id >= ticket.oldest_key:
            return key
        await self._read_keys()
        return signing_key(_not_revoked(self._keys, ticket), self._wall())

    async def read(self, text: str) -> Code:
        """The code, if we signed it; BadCode otherwise."""
        await self.keys()
        known_at = self._read_at
        try:
            return read_code(text, self._public)
        except BadCode:
            if time.monotonic() - known_at < KEYS_RETRY_S:
                raise
            await self._read_keys()
            return read_code(text, self._public)

    async def public_keys(self) -> Mapping[int, bytes]:
        """Public keys by id, without those that were revoked at every show."""
        await self.keys()
        return self._trusted

    async def read_with_keys(self, read: Callable[[Mapping[int, bytes]], T], *unknown: type[Exception]) -> T:
        """What `read` returns for the public keys; an `unknown` one may be newer than those we have."""
        try:
            return read(await self.public_keys())
        except unknown:
            if time.monotonic() - self._read_at < KEYS_RETRY_S:
                raise
            await self._read_keys()
            return read(self._trusted)

    async def is_live(self, code: Code, binding: int) -> bool:
        """Whether the tag is this phone's, of this half minute."""
        key = (await self.keys())[code.key_id]
        secret = phone_secret(show_secret(key.secret, code.ticket.show_id), code.ticket, binding)
        return is_live(code, secret, self._wall())

    async def fixed_code(self, ticket: IssuedTicket) -> str:
        return fixed_code(await self._key_for(ticket), ticket.ticket)

    async def live_code(self, ticket: IssuedTicket) -> tuple[str, bytes]:
        """The code of this half minute, and the secret it is made with."""
        key = await self._key_for(ticket)
        secret = phone_secret(show_secret(key.secret, ticket.show_id), ticket.ticket, ticket.binding)
        return live_code(key, ticket.ticket, secret, self._wall()), secret

    async def link(self, ticket: IssuedTicket) -> str:
        return build_link(await self._key_for(ticket), ticket.ticket)

    async def show_of_link(self, link: str) -> int:
        """The show that a link names. Raises NoSuchTicket for any other text."""
        return read_link(link, await self.keys()).show_id

    async def ticket_at(self, link: str) -> IssuedTicket:
        """The ticket behind a link, unless it has changed hands since, or the link's key was revoked."""
        named = read_link(link, await self.keys())
        found = await self.find(named.show_id, named.serial)
        if found is None or found.edition != named.edition:
            raise NoSuchTicket
        read_link(link, _not_revoked(await self.keys(), found))
        return found

    async def find(self, show_id: int, serial: int) -> IssuedTicket | None:
        row = await self._postgres.fetchrow(Q.ticket, show_id, serial)
        return parse_ticket(row) if row else None

    async def of_booking(self, show_id: int, number: int) -> list[IssuedTicket]:
        return [
            parse_ticket(row) for row in await self._postgres.fetch(Q.tickets_of_booking, show_id, number)
        ]

    async def of_owner(
        self, account_ids: Sequence[int], proved_email: str | None, *, before: int, limit: int
    ) -> list[IssuedTicket]:
        """Of the accounts of one person, and those offered to their proved address."""
        rows = await self._postgres.fetch(Q.tickets_of_owner, account_ids, proved_email, before, limit)
        return [parse_ticket(row) for row in rows]

    async def bind_phone(self, tickets: Sequence[IssuedTicket], phone: str) -> None:
        """From now on the live codes of these tickets, all of one show, are this phone's."""
        serials = [ticket.serial for ticket in tickets]
        digest = hashlib.sha256(phone.encode()).digest()
        await self._postgres.execute(Q.bind_phone, tickets[0].show_id, serials, digest)

    async def resend(self, show_id: int, number: int, account_id: int) -> None:
        sent = await self._postgres.fetchval(Q.resend, show_id, number, RESENDS_AN_HOUR_MAX, account_id)
        if sent is None:
            raise ResendMax(limit=RESENDS_AN_HOUR_MAX, retry_after_s=3600)

    async def paper(
        self,
        occasion: TicketShow,
        tickets: Sequence[IssuedTicket],
        booking: Booking | None,
        locale: str = DEFAULT_LOCALE,
    ) -> bytes:
        """To print: at least one, all of one show. What is void or live alone has no code there."""
        layout = (await self._catalogue.show_on_sale(occasion.show_id)).layout
        sheets = [
            build_printed_ticket(
                one, layout, booking, await self.fixed_code(one) if one.has_paper_code else None
            )
            for one in tickets
        ]
        return await self.printer.print(occasion, sheets, locale)

    async def calendar(
        self, booking: Booking, tickets: Sequence[IssuedTicket], locale: str = DEFAULT_LOCALE
    ) -> bytes:
        """The tickets of a booking as an entry that moves with the show, and is struck out with it."""
        layout = (await self._catalogue.show_on_sale(booking.show_id)).layout
        occasion = await self.occasion(booking.show_id)
        seats = [layout.labels[one.seat] for one in tickets if one.voided_at is None]
        return calendar_file(
            occasion,
            booking.number,
            seats,
            texts_for(locale),
            is_off=occasion.cancelled or not seats,
            now=datetime.fromtimestamp(self._wall(), UTC),
        )

    async def recent_occasion(self, show_id: int) -> TicketShow:
        """As it was OCCASION_FRESH_S ago at most: for pages that many look at."""
        return await self._occasions.get(show_id)

    async def occasion(self, show_id: int) -> TicketShow:
        card = await self._catalogue.show_detail(show_id)
        venue = await self._catalogue.venue(card["venue_id"])
        cities = {city.slug: city.name for city in await self._catalogue.cities()}
        return TicketShow(
            show_id=show_id,
            title=card["title"],
            hall=card["hall"],
            venue=card["venue"],
            address=venue["address"],
            city=cities.get(card["city"], card["city"]),
            starts_at=card["starts_at"],
            ends_at=card["ends_at"],
            starts_local=card["starts_at"].astimezone(ZoneInfo(card["timezone"])),
            timezone=card["timezone"],
            cancelled=card["cancelled"],
            revision=card["revision"],
        )

    async def door(self, show_id: int) -> EntryPolicy:
        row = await self._postgres.fetchrow(Q.door, show_id)
        return EntryPolicy(Codes(row["codes"]), row["reentry"]) if row else EntryPolicy()

    async def set_door(self, show_id: int, door: EntryPolicy) -> None:
        async with self._postgres.transaction() as tx:
            row = await tx.fetchrow(Q.door, show_id)
            await tx.execute(Q.set_door, show_id, door.codes, door.reentry)
            before = EntryPolicy(Codes(row["codes"]), row["reentry"]) if row else EntryPolicy()
            if before != door:
                old, new = asdict(before), asdict(door)
                entry = AuditEntry(action="door.changed", subject=("show", show_id), show_id=show_id)
                await record(tx, replace(entry, before=old, after=new))

    async def _read_keys(self) -> None:
        rows = await self._postgres.fetch(Q.ticket_keys)
        self._keys = {row["key_id"]: TicketKey(**row) for row in rows}
        self._public = {key_id: key.public for key_id, key in self._keys.items()}
        self._trusted = {
            one: public for one, public in self._public.items() if not self._keys[one].is_revoked
        }
        self._read_at = time.monotonic()


def _not_revoked(keys: Mapping[int, TicketKey], ticket: IssuedTicket) -> dict[int, TicketKey]:
    return {key_id: key for key_id, key in keys.items() if key_id >= ticket.oldest_key}


def parse_ticket(row: Any) -> IssuedTicket:
    return IssuedTicket(**dict(row) | {"codes": Codes(row["codes"])})


def _new_key() -> tuple[bytes, bytes]:
    return Ed25519PrivateKey.generate().private_bytes_raw(), secrets.token_bytes(SECRET_BYTES)
