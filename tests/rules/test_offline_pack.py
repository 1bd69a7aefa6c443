"""A gate without a network: its pack, the device it is sealed for, and its verdicts (R30, G2)."""

import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from holdfast.checkin.offline import (
    NONCE,
    PREFIX,
    BadPack,
    OfflineGate,
    Pack,
    PackShow,
    PackTicket,
    _cipher,
    is_device_key,
    open_pack,
    seal_pack,
)
from holdfast.checkin.scan import OfflineScan, Verdict, Way
from holdfast.tickets import Codes, Ticket, TicketKey, phone_secret, show_secret
from holdfast.tickets.ticket import fixed_code, live_code

KEY = TicketKey(1, b"\1" * 32, b"\2" * 32, 0.0)
OTHER = TicketKey(2, b"\3" * 32, b"\4" * 32, 0.0)
TRUSTED = {1: KEY.public}
DEVICE = X25519PrivateKey.from_private_bytes(b"\5" * 32)
NOW = 1_000_000.0
IN, OUT = Way.ENTRY, Way.EXIT


def a_show(**other: Any) -> PackShow:
    fields: dict[str, Any] = {
        "show_id": 7,
        "title": "The Paper Boats",
        "starts_at_s": NOW + 3600,
        "codes": Codes.FIXED,
        "reentry": True,
        "secrets": {1: show_secret(KEY.secret, 7)},
        "tickets": [PackTicket(n, 1, 0, f"A-{n}", False, False) for n in (11, 12, 13)],
        "void": [14],
        "newest": 14,
    }
    return PackShow(**fields | other)


def a_pack(**other: Any) -> Pack:
    return Pack(3, "North", NOW, NOW + 3600, {1: KEY.public}, [a_show(**other)])


def seal_with_device_key(plain: bytes, drawn: bytes) -> bytes:
    device = DEVICE.public_key()
    once = X25519PrivateKey.from_private_bytes(drawn)
    public = once.public_key().public_bytes_raw()
    cipher = _cipher(once.exchange(device), public, device.public_bytes_raw())
    return public + cipher.encrypt(NONCE, plain, None)


@dataclass(frozen=True)
class Gate:
    offline: OfflineGate

    def says(self, serial: int, way: Way = IN, edition: int = 1, show: int = 7) -> Verdict:
        return self.offline.decide(fixed_code(KEY, Ticket(show, serial, edition)), way, NOW).verdict


def a_gate(**other: Any) -> Gate:
    return Gate(OfflineGate(a_pack(**other)))


class TestPack:
    raw = seal_pack(a_pack(), KEY, DEVICE.public_key().public_bytes_raw(), b"\6" * 32)

    def test_the_intended_device_can_open_the_pack(self) -> None:
        assert open_pack(self.raw, b"\5" * 32, TRUSTED) == a_pack()

    def test_another_device_cannot_open_the_pack(self) -> None:
        with pytest.raises(BadPack):
            open_pack(self.raw, b"\7" * 32, TRUSTED)

    def test_a_pack_signed_with_another_key_is_refused(self) -> None:
        forged = seal_pack(a_pack(), OTHER, DEVICE.public_key().public_bytes_raw(), b"\6" * 32)

        for trusted in (TRUSTED, {2: KEY.public}, {}):
            with pytest.raises(BadPack):
                open_pack(forged, b"\5" * 32, trusted)

    @given(st.integers(0, len(raw) - 1), st.integers(0, 7))
    def test_a_changed_bit_is_found(self, at: int, bit: int) -> None:
        changed = bytearray(self.raw)
        changed[at] ^= 1 << bit
        # The highest bit of an X25519 key does not count, by its RFC; the seal is over what was sent.
        with pytest.raises(BadPack):
            open_pack(bytes(changed), b"\5" * 32, TRUSTED)

    @given(st.binary(max_size=200))
    def test_arbitrary_bytes_are_refused(self, raw: bytes) -> None:
        with pytest.raises(BadPack):
            open_pack(raw, b"\5" * 32, TRUSTED)

    @given(st.binary(max_size=300), st.binary(min_size=32, max_size=32))
    def test_any_unsigned_content_sealed_for_the_device_is_refused(self, plain: bytes, drawn: bytes) -> None:
        """The device's key is public: anyone can seal for it. Only the box office can sign."""
        with pytest.raises(BadPack):
            open_pack(seal_with_device_key(plain, drawn), b"\5" * 32, TRUSTED)

    @pytest.mark.parametrize(
        "body",
        [b"", b"x", zlib.compress(b""), zlib.compress(b"\xc1"), zlib.compress(msgspec.msgpack.encode({})),
         zlib.compress(msgspec.msgpack.encode({"pass_id": "three"})), zlib.compress(b"\x81" * 5000)],
    )  # fmt: skip
    def test_a_signed_pack_that_cannot_be_parsed_is_refused(self, body: bytes) -> None:
        """A newer box office may send values that this device does not know."""
        plain = bytes((1,)) + KEY.sign(PREFIX + body) + body

        with pytest.raises(BadPack):
            open_pack(seal_with_device_key(plain, b"\6" * 32), b"\5" * 32, TRUSTED)

    @given(st.integers(0, len(raw) - 1))
    def test_a_cut_one_is_refused(self, length: int) -> None:
        with pytest.raises(BadPack):
            open_pack(self.raw[:length], b"\5" * 32, TRUSTED)

    def test_no_name_or_address_of_a_person_is_in_it(self) -> None:
        assert set(PackTicket.__struct_fields__) == {
            "serial",
            "edition",
            "binding",
            "seat",
            "is_used",
            "is_inside",
            "since_s",
            "gate",
        }

    @pytest.mark.parametrize("raw", [b"", bytes(32), b"\1" + bytes(31), b"x" * 31, b"x" * 33])
    def test_an_unusable_public_key_is_not_a_device_key(self, raw: bytes) -> None:
        assert not is_device_key(raw)


class TestOffline:
    def test_a_ticket_is_admitted_once(self) -> None:
        gate = a_gate()

        assert [gate.says(11), gate.says(11), gate.says(12)] == [
            Verdict.ADMITTED,
            Verdict.USED,
            Verdict.ADMITTED,
        ]

    def test_a_second_scan_reports_the_time_of_the_first(self) -> None:
        gate = a_gate()
        gate.says(11)

        found = gate.offline.decide(fixed_code(KEY, Ticket(7, 11, 1)), IN, NOW + 60)

        assert (found.first_at, found.first_gate) == (datetime.fromtimestamp(NOW, UTC), "North")
        assert found.seat == "A-11"

    def test_it_reports_the_gate_of_an_admission_before_the_pack_was_made(self) -> None:
        gate = a_gate(tickets=[PackTicket(11, 1, 0, "A-11", True, True, NOW - 600, "South")])

        found = gate.offline.decide(fixed_code(KEY, Ticket(7, 11, 1)), IN, NOW)

        assert (found.verdict, found.first_gate) == (Verdict.USED, "South")
        assert found.first_at == datetime.fromtimestamp(NOW - 600, UTC)

    @pytest.mark.parametrize(
        ("ticket", "verdict"),
        [
            (Ticket(7, 14, 1), Verdict.VOID),
            (Ticket(8, 11, 1), Verdict.WRONG_SHOW),
            (Ticket(7, 5, 1), Verdict.LOST_IN_RESTORE),  # older than the pack, and not in it
            (Ticket(7, 99, 1), Verdict.ADMITTED),  # sold since
            (Ticket(7, 11, 2), Verdict.ADMITTED),  # given away since
        ],
    )
    def test_the_pack_decides_offline_verdicts(self, ticket: Ticket, verdict: Verdict) -> None:
        assert a_gate().offline.decide(fixed_code(KEY, ticket), IN, NOW).verdict is verdict

    def test_a_suspended_ticket_is_not_one_that_was_given_back(self) -> None:
        gate = a_gate(void=[13, 14], suspended=[13]).offline

        found = {n: gate.decide(fixed_code(KEY, Ticket(7, n, 1)), IN, NOW) for n in (13, 14)}

        assert {one.verdict for one in found.values()} == {Verdict.VOID}
        assert [found[n].is_suspended for n in (13, 14)] == [True, False]

    def test_an_edition_older_than_the_packs_belongs_to_another_holder(self) -> None:
        gate = a_gate(tickets=[PackTicket(11, 3, 0, "A-11", False, False)])

        assert [gate.says(11, edition=n) for n in (1, 2, 3)] == [
            Verdict.TRANSFERRED,
            Verdict.TRANSFERRED,
            Verdict.ADMITTED,
        ]

    def test_a_forged_code_is_unknown(self) -> None:
        assert a_gate().offline.decide("HELLO", IN, NOW).verdict is Verdict.UNKNOWN
        forged = fixed_code(OTHER, Ticket(7, 11, 1))
        assert a_gate().offline.decide(forged, IN, NOW).verdict is Verdict.UNKNOWN

    def test_a_visitor_inside_when_the_pack_was_made_counts_as_inside(self) -> None:
        gate = a_gate(tickets=[PackTicket(11, 1, 0, "A-11", True, True)])

        assert [gate.says(11), gate.says(11, OUT), gate.says(11), gate.says(11)] == [
            Verdict.USED,
            Verdict.LEFT,
            Verdict.ADMITTED,
            Verdict.USED,
        ]

    def test_without_re_entry_out_is_out(self) -> None:
        gate = a_gate(reentry=False)

        assert [gate.says(11), gate.says(11, OUT), gate.says(11)] == [
            Verdict.ADMITTED,
            Verdict.LEFT,
            Verdict.USED,
        ]

    def test_a_ticket_that_is_not_inside_cannot_leave(self) -> None:
        assert a_gate().says(11, OUT) is Verdict.NOT_INSIDE

    def test_decisions_survive_a_restart(self) -> None:
        gate = a_gate()
        at = datetime.fromtimestamp(NOW, UTC)
        code = fixed_code(KEY, Ticket(7, 11, 1))

        gate.offline.remember(OfflineScan("one", code, Verdict.ADMITTED, at))
        gate.offline.remember(OfflineScan("two", "HELLO", Verdict.ADMITTED, at))
        gate.offline.remember(OfflineScan("three", "", Verdict.ADMITTED, at), (7, 12))  # found by name

        assert [gate.says(11), gate.says(12), gate.says(13)] == [
            Verdict.USED,
            Verdict.USED,
            Verdict.ADMITTED,
        ]

    def test_a_pack_ends(self) -> None:
        gate = a_gate().offline

        assert gate.is_good(NOW + 3599)
        assert not gate.is_good(NOW + 3600)


class TestOfflineLive:
    ticket = Ticket(7, 11, 1)

    def code(self, binding: int, at: float = NOW) -> str:
        secret = phone_secret(show_secret(KEY.secret, 7), self.ticket, binding)
        return live_code(KEY, self.ticket, secret, at)

    def says(self, code: str, codes: Codes = Codes.LIVE) -> Verdict:
        tickets = [PackTicket(11, 1, 2, "A-11", False, False)]
        return a_gate(tickets=tickets, codes=codes).offline.decide(code, IN, NOW).verdict

    def test_the_phone_s_code_of_now_opens_and_a_picture_does_not(self) -> None:
        assert self.says(self.code(2)) is Verdict.ADMITTED
        assert self.says(self.code(2, NOW - 90)) is Verdict.STALE_CODE

    def test_a_phone_from_before_is_stale_and_one_bound_since_is_good(self) -> None:
        assert self.says(self.code(1)) is Verdict.STALE_CODE
        assert self.says(self.code(3)) is Verdict.ADMITTED

    def test_paper_tickets_are_admitted_only_where_allowed(self) -> None:
        paper = fixed_code(KEY, self.ticket)

        assert self.says(paper) is Verdict.LIVE_CODE_NEEDED
        assert self.says(paper, Codes.LIVE_OR_PAPER) is Verdict.ADMITTED
