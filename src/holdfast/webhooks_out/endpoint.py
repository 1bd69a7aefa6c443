"""An endpoint: where an organiser wants to be told, and what they send and see of it. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid
from holdfast.outbox import KINDS

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

ENDPOINTS_MAX = 20  # of one organiser
KINDS_MAX = 60
# Facts that are nobody's in particular: the house's cities and venues, which many organisers use.
TOLD = tuple(kind for kind in KINDS if kind not in ("city.changed", "venue.changed"))

Url = Annotated[str, Meta(min_length=1, max_length=2000, examples=["https://hall.example/hooks"])]
KindName = Annotated[str, Meta(max_length=60, examples=["booking.confirmed"])]
KindNames = Annotated[list[KindName], Meta(max_length=KINDS_MAX)]


class NewEndpoint(Struct, forbid_unknown_fields=True, frozen=True):
    """Where facts of your events are to be told; `kinds` of facts, none: all."""

    url: Url
    kinds: KindNames = []
    active: bool = True


class EndpointChange(Struct, forbid_unknown_fields=True, frozen=True):
    """What is not named stays as it is."""

    url: Url | UnsetType = UNSET
    kinds: KindNames | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class EndpointPage(Struct, frozen=True, kw_only=True):
    endpoint_id: int
    organiser_id: int
    url: str
    kinds: list[str]  # none: all
    active: bool
    off_reason: str | None  # why we switched it off
    failing_since: datetime | None  # the first no after the last yes
    old_secret_until: datetime | None  # until then two secrets sign
    made_at: datetime


class MadeEndpoint(Struct, frozen=True):
    endpoint: EndpointPage
    secret: str  # checks signatures; told this once


class EndpointList(Struct, frozen=True):
    endpoints: list[EndpointPage]


def checked_kinds(kinds: Sequence[str]) -> list[str]:
    if strange := sorted(set(kinds) - set(TOLD)):
        raise Invalid(field="kinds", detail=f"There is no fact {strange[0]!r} to be told.")
    return sorted(set(kinds))


def endpoint_page(row: "Row") -> EndpointPage:
    copied = ("organiser_id", "url", "kinds", "active", "off_reason", "failing_since", "made_at")
    return EndpointPage(
        endpoint_id=row["id"], old_secret_until=row["old_until"], **{name: row[name] for name in copied}
    )
