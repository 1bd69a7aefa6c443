"""The order of facts, and up to which id no fact can appear in between. No I/O.

    ids handed out       1  2  3  4  5  6
    visible now          1  2     4  5         3 is still being written, or was rolled back
    settled              ──────┘               no reader may pass 3 before that is known

Ids are handed out before a transaction commits, so a lower one may become visible after a higher one: a
reader that remembers the highest id it has seen would never see it.
"""

from collections.abc import Iterable


def last_settled_id(settled: int, ids: Iterable[int]) -> int:
    """The last id of the unbroken run behind `settled`; `settled` itself when the next one is missing."""
    for id in ids:
        if id != settled + 1:
            break
        settled = id
    return settled
