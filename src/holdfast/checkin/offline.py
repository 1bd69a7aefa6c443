"""The rules of a gate without a network: what a pack and its own memory let it decide. No I/O.

    code ─► ours? ─► of a show of the pack? ─► given back? ─► this edition? ─► live? ─► inside already? ─► in

- A ticket that is not in the pack but newer than it was sold since: our signature is enough.
- An edition newer than the pack's was given away since: who has it now has the newer code.
- Two gates without a network cannot know of each other. Both let in; when they tell of it, the later one by
  their clocks is raised as a conflict (G2). Nothing that has happened is written differently afterwards.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from holdfast.checkin.scan import OPENING_VERDICTS, OfflineScan, Verdict, Way
from holdfast.tickets import BadCode, Code, Codes, TicketKey, is_live, phone_secret, read_code

PREFIX = b"holdfast pack\0"
KEY_BYTES = 32
SIGNATURE_BYTES = 64
NONCE = bytes(12)  # the key seals one message, so its number may be this


class BadPack(Exception):
    """Not one of our packs, not for this device, or damaged."""


class PackTicket(Struct, frozen=True, array_like=True):
    serial: int
    edition: int
    binding: int
    seat: str
    is_used: bool
    is_inside: bool
    since_s: float = 0.0  # when it was used, and
    gate: str = ""  # where


class PackShow(Struct, frozen=True):
    show_id: int
    title: str
    starts_at_s: float
    codes: Codes
    reentry: bool
    secrets: dict[int, bytes]  # by key id: for live codes of this show
    tickets: list[PackTicket]
    void: list[int]  # serials that were given back
    newest: int  # serials up to here are in one of the two lists; later ones were sold since
    oldest_key: int = 1  # codes of older keys are revoked
    suspended: list[int] = []  # serials in `void` that were not given back: their payment is disputed


class Pack(Struct, frozen=True):
    pass_id: int
    gate: str
    made_at_s: float
    good_until_s: float
    keys: dict[int, bytes]  # public keys of tickets, and of the next pack
    shows: list[PackShow]


def seal_pack(pack: Pack, key: TicketKey, device_key: bytes, drawn: bytes) -> bytes:
    """`drawn` are 32 random bytes, used for nothing else."""
    body = zlib.compress(msgspec.msgpack.encode(pack))
    once = X25519PrivateKey.from_private_bytes(drawn)
    public = once.public_key().public_bytes_raw()
    shared = once.exchange(X25519PublicKey.from_public_bytes(device_key))
    plain = bytes((key.key_id,)) + key.sign(PREFIX + body) + body
    return public + _cipher(shared, public, device_key).encrypt(NONCE, plain, None)


def open_pack(raw: bytes, device_private: bytes, trusted: Mapping[int, bytes]) -> Pack:
    """The pack, if it is for this device and one of these public keys, by id, signed it."""
    try:
        device = X25519PrivateKey.from_private_bytes(device_private)
        public, mine = raw[:KEY_BYTES], device.public_key().public_bytes_raw()
        shared = device.exchange(X25519PublicKey.from_public_bytes(public))
        plain = _cipher(shared, public, mine).decrypt(NONCE, raw[KEY_BYTES:], None)
        signature, body = plain[1 : 1 + SIGNATURE_BYTES], plain[1 + SIGNATURE_BYTES :]
        Ed25519PublicKey.from_public_bytes(trusted[plain[0]]).verify(signature, PREFIX + body)
        return msgspec.msgpack.decode(zlib.decompress(body), type=Pack)
    except (InvalidTag, InvalidSignature, ValueError, KeyError, IndexError, zlib.error) as error:
        raise BadPack(f"not a pack for this device: {type(error).__name__}") from None


def is_device_key(raw: bytes) -> bool:
    """32 bytes that a secret can be shared with: the few points where it would be 0 are not valid keys."""
    if len(raw) != KEY_BYTES:
        return False
    try:
        X25519PrivateKey.from_private_bytes(bytes(31) + b"\1").exchange(
            X25519PublicKey.from_public_bytes(raw)
        )
    except ValueError:
        return False
    return True


def _cipher(shared: bytes, public: bytes, device_key: bytes) -> ChaCha20Poly1305:
    info = b"holdfast pack" + public + device_key
    return ChaCha20Poly1305(HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))


Place = tuple[int, int]  # (show, serial)
BINDINGS_AHEAD_MAX = 5  # phones a ticket may have been bound to since the pack was made


@dataclass(frozen=True, slots=True)
class OfflineDecision:
    verdict: Verdict
    seat: str = ""
    title: str = ""
    first_at: datetime | None = None
    first_gate: str = ""
    place: Place | None = None
    is_suspended: bool = False


@dataclass(slots=True)
class Memory:
    """The gate's own scans: the tickets inside, and since when. The caller stores it."""

    admitted: dict[Place, datetime] = field(default_factory=dict)
    outside: set[Place] = field(default_factory=set)  # were inside, and were scanned out

    def note(self, place: Place, verdict: Verdict, at: datetime) -> None:
        if verdict is Verdict.ADMITTED:
            self.admitted[place] = at
            self.outside.discard(place)
        elif verdict is Verdict.LEFT:
            self.admitted.pop(place, None)
            self.outside.add(place)


class OfflineGate:
    def __init__(self, pack: Pack, memory: Memory | None = None) -> None:
        self.pack = pack
        self.memory = memory or Memory()
        self._shows = {show.show_id: show for show in pack.shows}
        self._tickets = {(show.show_id, one.serial): one for show in pack.shows for one in show.tickets}
        self._void = {(show.show_id, serial) for show in pack.shows for serial in show.void}
        self._suspended = {(show.show_id, serial) for show in pack.shows for serial in show.suspended}

    def is_good(self, now: float) -> bool:
        return now < self.pack.good_until_s

    def decide(self, text: str, way: Way, now: float) -> OfflineDecision:
        """The verdict, remembered if it opens the door. The caller has seen to it that the pack is good."""
        try:
            code = read_code(text, self.pack.keys)
        except BadCode:
            return OfflineDecision(Verdict.UNKNOWN)
        show = self._shows.get(code.ticket.show_id)
        if show is None:
            return OfflineDecision(Verdict.WRONG_SHOW)
        place = (show.show_id, code.ticket.serial)
        known = self._tickets.get(place)
        verdict = self._verdict(show, code, known, way, now)
        first_at, gate = self._first(place, known) if verdict is Verdict.USED else (None, "")
        if verdict in OPENING_VERDICTS:
            self.memory.note(place, verdict, datetime.fromtimestamp(now, UTC))
        seat = known.seat if known else ""
        is_suspended = verdict is Verdict.VOID and place in self._suspended
        return OfflineDecision(verdict, seat, show.title, first_at, gate, place, is_suspended)

    def _first(self, place: Place, known: PackTicket | None) -> tuple[datetime | None, str]:
        """When and where it was used: here, or elsewhere before the pack was built."""
        if place in self.memory.admitted:
            return self.memory.admitted[place], self.pack.gate
        if known is not None and known.since_s:
            return datetime.fromtimestamp(known.since_s, UTC), known.gate
        return None, ""

    def place_of(self, text: str) -> Place | None:
        """The ticket of a code; None: it is not one of our tickets."""
        try:
            ticket = read_code(text, self.pack.keys).ticket
        except BadCode:
            return None
        return ticket.show_id, ticket.serial

    def remember(self, scan: OfflineScan, place: Place | None = None) -> None:
        """A scan from before, with the place that was read then: a thousand signatures take a while."""
        if scan.verdict in OPENING_VERDICTS and (place := place or self.place_of(scan.code)) is not None:
            self.memory.note(place, scan.verdict, scan.scanned_at)

    def _verdict(self, show: PackShow, code: Code, known: PackTicket | None, way: Way, now: float) -> Verdict:
        place = (show.show_id, code.ticket.serial)
        if code.key_id < show.oldest_key:
            return Verdict.REVOKED_CODE
        if place in self._void:
            return Verdict.VOID
        if known is None and code.ticket.serial <= show.newest:
            return Verdict.LOST_IN_RESTORE
        if known is not None and code.ticket.edition < known.edition:
            return Verdict.TRANSFERRED
        if code.tag is None and show.codes is Codes.LIVE:
            return Verdict.LIVE_CODE_NEEDED
        if code.tag is not None and not self._is_live(show, code, known, now):
            return Verdict.STALE_CODE
        is_inside = place in self.memory.admitted or (
            known is not None and known.is_inside and place not in self.memory.outside
        )
        if way is Way.EXIT:
            return Verdict.LEFT if is_inside else Verdict.NOT_INSIDE
        was_inside = is_inside or place in self.memory.outside or (known is not None and known.is_used)
        return Verdict.USED if is_inside or (was_inside and not show.reentry) else Verdict.ADMITTED

    def _is_live(self, show: PackShow, code: Code, known: PackTicket | None, now: float) -> bool:
        secret = show.secrets.get(code.key_id)
        if secret is None:
            return False
        first = known.binding if known is not None else 0
        bindings = range(first, first + BINDINGS_AHEAD_MAX + 1)
        return any(is_live(code, phone_secret(secret, code.ticket, one), now) for one in bindings)
