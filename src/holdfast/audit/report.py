"""What an audit found. No I/O."""

from dataclasses import dataclass, field

KEPT_MAX = 10_000  # of a check: what is wrong more often than this is wrong everywhere
TOLD_MAX = 20


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
        self.violations += found[:KEPT_MAX]

    def first(self) -> list[Violation]:
        """The first of each check: enough to know what it is."""
        told: dict[str, list[Violation]] = {}
        for violation in self.violations:
            told.setdefault(violation.check, []).append(violation)
        return [one for found in told.values() for one in found[:TOLD_MAX]]

    @property
    def total(self) -> int:
        return sum(self.checks.values())
