"""Everything that happened to a booking, in order: its moves, payments, refunds and entries. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.attendees import BookingDossier
from holdfast.refunds import Refund


@dataclass(frozen=True, slots=True)
class Moment:
    at: datetime
    what: str  # its text is desk.moment_…
    actor: str | None = None  # a person; None: the buyer, a timer or a rule
    amount_minor: int | None = None
    note: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


def build_timeline(
    dossier: BookingDossier, refunds: Sequence[Refund], attempts: Sequence[Mapping[str, Any]]
) -> list[Moment]:
    moments = [
        Moment(step.at, f"move_{step.move}", step.actor.name if step.actor else None)
        for step in dossier.steps
        if step.move != "refund" or not refunds
    ]
    for attempt in attempts:
        if attempt["step"] in ("declined", "called_off", "expired"):
            at = attempt["ended_at"] or attempt["requested_at"]
            moments.append(
                Moment(
                    at, f"payment_{attempt['step']}", None, attempt["amount_minor"], attempt["reason"] or ""
                )
            )
    for refund in refunds:
        moments.append(
            Moment(refund.requested_at, f"refund_by_{refund.rule}", None, refund.amount_minor, refund.note)
        )
        if refund.done_at is not None:
            moments.append(
                Moment(refund.done_at, "refund_done", None, refund.amount_minor, refund.settled_note or "")
            )
        elif refund.state.value == "by_hand":
            moments.append(
                Moment(refund.requested_at, "refund_by_hand", None, refund.amount_minor, refund.reason or "")
            )
    for ticket in dossier.tickets:
        if ticket.checked_in_at is not None:
            moments.append(Moment(ticket.checked_in_at, "checked_in", None, None, ticket.seat))
    return sorted(moments, key=lambda one: one.at)
