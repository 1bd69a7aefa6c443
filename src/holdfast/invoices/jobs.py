"""What writes credit notes: money that went back has its paper, whether or not anybody asks for it."""

from holdfast.invoices.store import Invoices
from holdfast.outbox import Consumer, Fact, RefundDone

GROUP = "invoices"


def consumer(invoices: Invoices) -> Consumer:
    """Told twice it writes once: a refund that has its paper gets no other."""

    async def hear(fact: Fact) -> None:
        if fact.number is not None:
            await invoices.issue(fact.show_id, fact.number)

    return Consumer(group=GROUP, kinds=(RefundDone.KIND,), call=hear)
