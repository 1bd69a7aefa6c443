"""The oracle: what went wrong, counted from the clients' history and the ledger's rows. No I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from lab.contest.messages import Event


class Verdict(Struct, frozen=True):
    double_sales: int  # sales of a seat beyond its first one
    lost_holds: int  # acknowledged holds that were broken before their promised end
    lost_sales: int  # acknowledged sales that the ledger does not have
    sales: int  # acknowledged
    paid_for_nothing: int  # buyers who paid, and got no seat


def judge(events: Iterable[Event], sold_rows: Mapping[int, int]) -> Verdict:
    """`sold_rows`: rows of sales in the ledger by seat."""
    by_seat: dict[int, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.at_s):
        by_seat[event.seat].append(event)
    double_sales = lost_holds = lost_sales = sales = paid_for_nothing = 0
    for seat, history in by_seat.items():
        acknowledged = [event for event in history if event.what == "sold"]
        rows = sold_rows.get(seat, 0)
        double_sales += max(0, max(len(acknowledged), rows) - 1)
        lost_sales += max(0, len(acknowledged) - rows)
        sales += len(acknowledged)
        lost_holds += sum(is_lost(event, history) for event in history if event.what == "held")
        paid_for_nothing += sum(event.what == "lost" for event in history)
    return Verdict(double_sales, lost_holds, lost_sales, sales, paid_for_nothing)


def is_lost(hold: Event, history: Iterable[Event]) -> bool:
    """Before its promised end, its payment or sale was refused, or another client bought the seat first.

    A hold that its own client released or bought in time is not lost.
    """
    for event in history:
        if event.at_s <= hold.at_s or event is hold:
            continue
        if event.at_s >= hold.until_s:
            return False
        if event.client == hold.client and event.what in ("sold", "released", "held"):
            return False
        if event.client == hold.client and event.what in ("lost", "lapsed"):
            return True
        if event.client != hold.client and event.what == "sold":
            return True
    return False


def jain_index(shares: Iterable[float]) -> float:
    """1: every client got the same. 1/n: one client of n got everything."""
    values = list(shares)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0
