"""Seats kept back, as organisers send and see them. Fans see that a seat is blocked, and nothing of this.

No I/O."""

from datetime import datetime, timedelta
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from holdfast.errors import Invalid

BLOCK_SEATS_MAX = 1000  # in one block; a stand is kept back in several
BLOCKS_MAX = 500  # in one show

Label = Annotated[str, Meta(min_length=1, max_length=200)]
Labels = Annotated[list[Label], Meta(min_length=1, max_length=BLOCK_SEATS_MAX)]
BlockName = Annotated[str, Meta(min_length=1, max_length=100, examples=["sponsor"])]
Moment = Annotated[datetime, Meta(tz=True)]
Hours = Annotated[int, Meta(ge=1, le=24 * 366)]


class NewBlock(Struct, forbid_unknown_fields=True, frozen=True):
    """`release_at`, or `release_hours_before` the start: then the seats go to the sale by themselves."""

    seats: Labels
    name: BlockName  # for whom, or why
    release_at: Moment | None = None
    release_hours_before: Hours | None = None


class BlockChange(Struct, forbid_unknown_fields=True, frozen=True):
    """What is not sent stays as it is; a release of null is none. Of the two ways to say it, send one."""

    name: BlockName | UnsetType = UNSET
    release_at: Moment | UnsetType | None = UNSET
    release_hours_before: Hours | UnsetType | None = UNSET


class ReleaseRequest(Struct, forbid_unknown_fields=True, frozen=True):
    """Seats of the block to give to the sale; without any, all of them."""

    seats: Labels | None = None


class Block(Struct, frozen=True):
    block_id: str
    name: str
    seats: list[str]
    made_at: datetime | None = None
    release_at: datetime | None = None  # then they go to the sale
    release_hours_before: int | None = None  # said so: it moves with the show
    withdrawn: bool = False  # for ever: they are no part of the hall any more


class BlockList(Struct, frozen=True):
    blocks: list[Block]


class BlockRelease(Struct, frozen=True):
    """When seats go to the sale; both None: when somebody says so."""

    at: datetime | None = None
    hours_before: int | None = None


def parse_release(
    at: datetime | UnsetType | None, hours: int | UnsetType | None, *, starts_at: datetime, now: datetime
) -> BlockRelease:
    """What was sent, as an instant. Refuses two that contradict, and one that has passed."""
    at = None if isinstance(at, UnsetType) else at
    hours = None if isinstance(hours, UnsetType) else hours
    if at is not None and hours is not None:
        raise Invalid(field="release_at", detail="Expected release_at or release_hours_before, not both.")
    instant = at if hours is None else starts_at - timedelta(hours=hours)
    if instant is not None and instant <= now:
        field = "release_at" if hours is None else "release_hours_before"
        raise Invalid(field=field, detail=f"That is {instant.isoformat()}, which has passed.")
    return BlockRelease(instant, hours)
