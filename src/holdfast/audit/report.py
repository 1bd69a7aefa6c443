"""What an audit found, and the comparison of a gateway's payments with ours. No I/O."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

VIOLATIONS_MAX = 10_000  # of a check: what is wrong more often than this is wrong everywhere
SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class Violation:
    check: str
    show_id: int | None
    what: str


@dataclass(slots=True)
class Report:
    checks: dict[str, int] = field(default_factory=dict)  # check -> violations found
    violations: list[Violation] = field(default_factory=list)  # all of them, up to a sane number a check

    def note(self, check: str, found: list[Violation]) -> None:
        self.checks[check] = self.checks.get(check, 0) + len(found)
        self.violations += found[:VIOLATIONS_MAX]

    def first(self) -> list[Violation]:
        """The first of each check: enough to know what it is."""
        by_check: dict[str, list[Violation]] = {}
        for violation in self.violations:
            by_check.setdefault(violation.check, []).append(violation)
        return [one for found in by_check.values() for one in found[:SHOWN_MAX]]

    @property
    def total(self) -> int:
        return sum(self.checks.values())


CHECK = "gateway_matches_ledger"


class OurPayment(Struct, frozen=True):
    show_id: int
    number: int
    attempt: int
    key: str
    reference: str | None
    step: str
    currency: str
    came_minor: int  # what we say was taken
    back_minor: int  # what we say has gone back
    requested_minor: int  # refunds requested that the gateway has not answered yet


class TheirPayment(Struct, frozen=True):
    reference: str | None
    currency: str | None
    came_minor: int  # what the gateway has taken
    back_minor: int  # what it has given back


def disagreements(ours: Iterable[OurPayment], theirs: Mapping[str, TheirPayment]) -> Iterator[Violation]:
    """Payments of which the gateway says something else than we do. `theirs` is by our key."""
    for our in ours:
        their = theirs.get(our.key, TheirPayment(None, None, 0, 0))
        if why := _difference(our, their):
            yield Violation(CHECK, our.show_id, f"payment {our.number}/{our.attempt} ({our.step}): {why}")


def unknown_payments(
    known: set[str], theirs: Mapping[str, TheirPayment], is_ours: Mapping[str, int]
) -> Iterator[Violation]:
    """Money that the gateway captured under a key of our bookings that the ledger does not know."""
    for key, show_id in is_ours.items():
        if key not in known and theirs[key].came_minor:
            yield Violation(
                CHECK, show_id, f"the gateway has {theirs[key].came_minor} for {key}, unknown to us"
            )


def _difference(our: OurPayment, their: TheirPayment) -> str:
    if our.came_minor != their.came_minor:
        return f"we have {our.came_minor}, the gateway took {their.came_minor}"
    if our.came_minor and their.currency not in (None, our.currency):
        return f"we have {our.currency}, the gateway {their.currency}"
    # A refund whose answer was lost may have been made: it is requested again under the same key.
    if not our.back_minor <= their.back_minor <= our.back_minor + our.requested_minor:
        return f"we gave back {our.back_minor}, the gateway {their.back_minor}"
    return ""
