"""What keeps figures up to date: every fact of a booking and of a refund."""

from holdfast.outbox import KINDS, Consumer
from holdfast.reports.store import ReportStore

GROUP = "figures"
HEARD = tuple(
    kind for kind in KINDS if kind.startswith(("booking.", "refund.")) and kind != "booking.blocked"
)


def consumer(figures: ReportStore) -> Consumer:
    return Consumer(group=GROUP, kinds=HEARD, call_many=figures.hear_many)
