"""Facts about waiting rooms. No I/O."""

from holdfast.outbox.body import Body


class QueueBody(Body, frozen=True, kw_only=True):
    opening: int  # counts the openings of this show's waiting room


class QueueOpened(QueueBody, frozen=True, kw_only=True):
    """People can join the waiting room of a show."""

    KIND = "queue.opened"
    opened_by: str  # schedule, organiser, demand
    commitment: str = ""  # to the seed of the draw, in hexadecimal; empty: there is no draw
    beacon: str = ""  # the public value that will be mixed in, by its name


class QueueDrawn(QueueBody, frozen=True, kw_only=True):
    """The order of everyone who had joined is drawn; admission begins."""

    KIND = "queue.drawn"
    entrants: int


class QueueDrained(QueueBody, frozen=True, kw_only=True):
    """Everything is sold: people who still waited do not get a turn."""

    KIND = "queue.drained"


class QueueClosed(QueueBody, frozen=True, kw_only=True):
    """The waiting room is closed: seats are held without one."""

    KIND = "queue.closed"
