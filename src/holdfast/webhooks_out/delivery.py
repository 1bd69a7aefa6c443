"""A delivery: one fact for one endpoint, its states and its signature. No I/O.

    fact ──► QUEUED ──► DONE         2xx
              │  ▲
              │  └── anything else: retry after PAUSES_S
              ├────► DEAD            out of tries
              └────► MISSED          the endpoint is off: by its organiser, by 410, or after failing for long

A replay sets DEAD, MISSED and DONE back to QUEUED. A worker leases a delivery for LEASE_S. If a process dies
after sending and before recording that, the delivery is sent again with the same webhook-id.
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.bookings import reference
from holdfast.engines.row_lease import Lease
from holdfast.outbox import Fact, UnknownBody
from holdfast.web.pod_pages import Positions, format_key

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

PAUSES_S = (5, 30, 120, 600, 3600, 21_600, 43_200, 86_400)  # after each try that failed; then it is dead
LEASE_S = 120  # longer than any try takes
RESPONSE_CHARS_MAX = 500  # stored characters of a response
REASON_MAX = 300
NAMED_SEATS = {"seats": "seat_labels", "given_back": "given_back_labels"}  # numbers in a body → their labels
GONE = 410  # the endpoint wants no more deliveries


class DeliveryState(StrEnum):
    QUEUED = "queued"
    DONE = "done"
    DEAD = "dead"
    MISSED = "missed"


class DueDelivery(Struct, frozen=True, kw_only=True):
    """A delivery to be sent now by the worker that leased it."""

    endpoint_id: int
    fact_id: int
    url: str
    secrets: list[bytes]
    payload: bytes
    tries: int
    turn: int
    pod: str = ""  # in whose outbox the fact is; empty: the home database's

    @property
    def message_id(self) -> str:
        """Every database counts its own facts."""
        return format_key(self.pod, self.fact_id)

    @property
    def lease(self) -> Lease:
        return Lease((self.endpoint_id, self.fact_id), self.turn)


class DeliveryResult(Struct, frozen=True, kw_only=True):
    """The result of a try."""

    status: int | None
    took_ms: int
    reason: str | None = None
    response: str = ""

    @property
    def is_yes(self) -> bool:
        return self.reason is None


class PodQuery(Struct, forbid_unknown_fields=True, frozen=True):
    """In a house with several databases, each of them counts its own facts."""

    pod: Annotated[str, Meta(max_length=31)] = ""  # `pod` of a fact, or `home`


class DeliveriesQuery(PodQuery, frozen=True):
    """Without `pod`, those of all databases."""

    state: DeliveryState | None = None
    before: Positions = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=200)] = 50


class DeliveryTry(Struct, frozen=True, kw_only=True):
    tried_at: datetime
    status: int | None  # null: no response
    took_ms: int
    reason: str | None
    response: str  # the first characters of the response body


class DeliveryPage(Struct, frozen=True, kw_only=True):
    webhook_id: str  # names the delivery in a replay: the fact_id, after the name of the pod if there is one
    fact_id: int
    pod: str  # in whose database the fact is; empty: the home database
    kind: str
    state: DeliveryState
    fact_at: datetime
    due_at: datetime | None  # when it is tried next
    tries: list[DeliveryTry]  # the newest first


class DeliveryList(Struct, frozen=True):
    deliveries: list[DeliveryPage]
    next: str | None  # ask for `before` this to go on; null: that was all
    complete: bool = True  # false: some databases cannot be reached, their deliveries are missing
    missing_pods: list[str] = msgspec.field(default_factory=list)


class ReplaySince(Struct, forbid_unknown_fields=True, frozen=True):
    """Send all deliveries since then again."""

    since: Annotated[datetime, Meta(tz=True)]
    failed_only: bool = True  # false: also deliveries that the endpoint accepted


class Replayed(Struct, frozen=True):
    deliveries: int
    complete: bool = True  # false: some databases cannot be reached, nothing was replayed there
    missing_pods: list[str] = msgspec.field(default_factory=list)
    off_in: list[str] = msgspec.field(default_factory=list)  # pods that have switched the endpoint off


def has_seats(fact: Fact) -> bool:
    return bool(fact.show_id and getattr(fact.body, "seats", None))


def build_payload(fact: Fact, labels: Sequence[str] = (), pod: str = "") -> bytes:
    """The fact, with what people call its booking and its seats. `labels`: of all seats of the show."""
    body = fact.body.values if isinstance(fact.body, UnknownBody) else msgspec.to_builtins(fact.body)
    data = {
        "fact_id": fact.id,
        **({"pod": pod} if pod else {}),
        "version": fact.version,
        "show_id": fact.show_id or None,
        "booking_id": fact.booking_id,
        "reference": reference(fact.show_id, fact.number) if fact.number is not None else None,
        **body,
    }
    for numbers, names in NAMED_SEATS.items():
        if labels and body.get(numbers):
            data[names] = [labels[seat] for seat in body[numbers]]
    return msgspec.json.encode({"type": fact.kind, "timestamp": fact.at, "data": data})


def parse_response(status: int, took_ms: int, response: bytes) -> DeliveryResult:
    text = response.decode("utf-8", "replace").replace("\0", "�")[:RESPONSE_CHARS_MAX]
    reason = None if 200 <= status < 300 else f"HTTP {status}"
    if 300 <= status < 400:
        reason = f"HTTP {status}: redirects are not followed"
    return DeliveryResult(status=status, took_ms=took_ms, reason=reason, response=text)


def delivery_page(row: "Row", pod: str = "") -> DeliveryPage:
    return DeliveryPage(
        webhook_id=format_key(pod, row["fact_id"]),
        pod=pod,
        fact_id=row["fact_id"],
        kind=row["kind"],
        state=DeliveryState(row["state"]),
        fact_at=row["at"],
        due_at=row["due_at"],
        tries=msgspec.json.decode(row["tries_json"], type=list[DeliveryTry]),
    )


SECRET_BYTES = 32
SECRET_PREFIX = "whsec_"


def format_secret(secret: bytes) -> str:
    return SECRET_PREFIX + b64encode(secret).decode()


def sign(secrets: Iterable[bytes], message_id: str, at_s: int, body: bytes) -> str:
    signed = b"%s.%d.%s" % (message_id.encode(), at_s, body)
    return " ".join(
        "v1," + b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode() for secret in secrets
    )


def build_headers(secrets: Iterable[bytes], message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign(secrets, message_id, at_s, body),
        "content-type": "application/json",
        "user-agent": "Holdfast-Webhooks/1",
    }
