"""Facts about waiting rooms. No I/O."""

from datetime import datetime

from holdfast.outbox.body import Body


class QueueBody(Body, frozen=True, kw_only=True):
    opening: int  # counts the openings of this show's waiting room


class QueueOpened(QueueBody, frozen=True, kw_only=True):
    """People can join the waiting room of a show."""

    KIND = "queue.opened"
    VERSION = 2
    opened_by: str  # schedule, organiser, demand
    commitment: str = ""  # to the seed of the draw, in hexadecimal; empty: there is no draw
    beacon: str = ""  # the public value that will be mixed in, by its name
    beacon_until: datetime | None = None  # the draw goes on without the value if it has not come until then


class QueueDrawn(QueueBody, frozen=True, kw_only=True):
    """The order of everyone who had joined is drawn; admission begins."""

    KIND = "queue.drawn"
    entrants: int


class QueueCalled(QueueBody, frozen=True, kw_only=True):
    """It is the turn of some people: at most once per second and room."""

    KIND = "queue.called"
    people: int
    called_at: datetime  # of each of their turns


class QueueDrained(QueueBody, frozen=True, kw_only=True):
    """Everything is sold: people who still waited do not get a turn."""

    KIND = "queue.drained"


class QueueClosed(QueueBody, frozen=True, kw_only=True):
    """The waiting room is closed: seats are held without one."""

    KIND = "queue.closed"
