"""Pages of a list that several databases have, each with numbers of its own. No I/O.

    42, east-42           an entry: of the home database, of the pod `east`
    before=120,east-42    the next page: home goes on before 120, east before 42, other pods begin

Within a database, entries are in the order of their numbers; between databases the time decides.
"""

import heapq
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, TypeVar

from msgspec import Meta

T = TypeVar("T")
LAST = 2**63 - 1
KEY = re.compile(r"(?:([a-z][a-z0-9_]{0,30})-)?([0-9]{1,19})", re.ASCII)
Positions = Annotated[str, Meta(max_length=2000, pattern=r"^[a-z0-9_,-]*$(?!\n)")]


def format_key(pod: str, number: int) -> str:
    """`pod`: empty for the home database."""
    return f"{pod}-{number}" if pod else str(number)


def parse_key(text: str) -> tuple[str, int] | None:
    """The pod and the number; None: no entry is named like that."""
    found = KEY.fullmatch(text)
    if found is None or int(found[2]) > LAST:
        return None
    return found[1] or "", int(found[2])


def parse_positions(text: str) -> dict[str, int]:
    """By pod. What is not a number of an entry is left out: its database begins."""
    return dict(key for one in text.split(",") if (key := parse_key(one)) is not None)


def merge_page(
    found: Mapping[str, Sequence[T]],
    size: int,
    before: str,
    *,
    time_of: Callable[[T], datetime],
    number_of: Callable[[T], int],
) -> tuple[list[T], str | None]:
    """The newest `size` entries, and the `before` of the next page; None: that was all.

    `found`: from each database that answered, those before its position, one more than `size` if there are
    more. A database that did not answer keeps its position.
    """
    by_pod = ([(pod, entry) for entry in entries] for pod, entries in found.items())
    merged = heapq.merge(*by_pod, key=lambda one: time_of(one[1]), reverse=True)
    newest = list(islice(merged, size + 1))
    shown = newest[:size]
    entries = [entry for _, entry in shown]
    if len(newest) <= size:
        return entries, None
    positions = parse_positions(before) | {pod: number_of(entry) for pod, entry in shown}
    return entries, ",".join(format_key(*place) for place in sorted(positions.items()))
