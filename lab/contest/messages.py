"""What the director and its client processes send each other, one JSON object per line. No I/O."""

from typing import Literal

from msgspec import Struct

from lab.strategies.strategy import Times

What = Literal["held", "refused", "lapsed", "sold", "lost", "released", "error"]
Point = Literal["hold", "held", "confirm", "paying"]


class Event(Struct, frozen=True, array_like=True):
    """An answer that a client got. `at_s`: of the monotonic clock, which all processes share."""

    at_s: float
    client: int
    seat: int
    what: What  # lapsed: the hold was gone before the payment; lost: after it
    until_s: float = 0.0  # of a hold: what it promised


class Note(Struct, frozen=True, array_like=True):
    at_s: float
    who: str
    text: str


class Open(Struct, tag=True, frozen=True):
    """Use this strategy from now on."""

    strategy: str
    show_id: int
    times: Times
    database_url: str
    redis_url: str
    voter_urls: tuple[str, ...]
    is_warm: bool = False  # every connection is open before the first client comes


class Load(Struct, tag=True, frozen=True):
    """Clients that hold and buy seats, as fast as they are answered, for some seconds."""

    first_client: int
    clients: int
    offer: int  # seats that are on offer at the same time
    seats: int  # of the show
    seconds: float
    sold_map: str  # a file with one byte per seat: what buyers see on the seat map


class Victims(Struct, tag=True, frozen=True):
    """One client per seat, who stops at this point until `Go`, and then buys what it can."""

    point: Point
    first_client: int
    seats: tuple[int, ...]


class Rivals(Struct, tag=True, frozen=True):
    """One client per seat, who tries to hold it until it has it or the time is over, and buys it."""

    first_client: int
    seats: tuple[int, ...]
    within_s: float


class Race(Struct, tag=True, frozen=True):
    """Two clients per seat, who write only when both have read; or one has waited for `wait_s`."""

    first_client: int
    seats: tuple[int, ...]
    wait_s: float


class Go(Struct, tag=True, frozen=True):
    """Victims go on."""


Command = Open | Load | Victims | Rivals | Race | Go


class LoadResult(Struct, frozen=True):
    seconds: float
    answers: int  # holds that were granted or refused
    errors: int
    retries: int
    hold_ms: list[float]  # of each answer
    answers_per_client: list[int]
    sales_per_client: list[int]


class Reply(Struct, frozen=True):
    parked: bool = False  # the victims are where they should stop
    events: list[Event] = []
    notes: list[Note] = []
    load: LoadResult | None = None
