"""A log that messages are appended to and read from, in order. It is bounded and may forget.

    Valkey Streams   redis://…, unix://…  the default, beside the holds
    NATS JetStream   nats://…             the extra `nats`
    Kafka            kafka://…            the extra `kafka`

A writer states where the log ends: two writers cannot interleave messages, and one whose log was emptied
learns (OutOfStep) how much of it is left. A reader states from which position on, and stores that position
itself: the log knows no readers. `after` in each message makes a hole visible to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Message:
    position: int  # grows along the log
    after: int  # nothing was ever between this position and the message's own
    body: bytes


class OutOfStep(Exception):
    """Nothing was appended: the log ends at `last` (0: it is empty), not where we wanted to go on."""

    def __init__(self, last: int) -> None:
        super().__init__(f"the log ends at {last}")
        self.last = last


class Reader(Protocol):
    async def read(self, after: int, limit: int, wait_s: float) -> list[Message]:
        """Messages beyond that position, oldest first; waits for the first one. EngineDown when it cannot."""
        ...

    async def close(self) -> None: ...


class Bus(Protocol):
    async def append(self, messages: Sequence[Message], end: int) -> None:
        """All of them, in order, if the log ends at that position (0: if it is empty); else OutOfStep.

        EngineDown: some of them may have been appended.
        """
        ...

    async def last(self) -> int:
        """Position of the newest message; 0 when there is none."""
        ...

    async def clear(self) -> None:
        """Forget everything."""
        ...

    def reader(self) -> Reader: ...

    async def close(self) -> None: ...


def in_step(position: int, messages: Sequence[Message]) -> list[Message]:
    """Those that follow one after the other from the position on.

    What lies before it is left out. At a hole we stop: the log has forgotten something.
    """
    found: list[Message] = []
    for message in messages:
        if message.position <= position:
            continue
        if message.after > position:
            break
        found.append(message)
        position = message.position
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class BusPlace:
    """Where a log is, and how much it keeps."""

    url: str
    name: str
    messages_max: int
    timeout_s: float
    replicas: int = 1  # nodes that have each message; of NATS alone
