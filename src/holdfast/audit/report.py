"""What an audit found. No I/O."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Violation:
    check: str
    show_id: int | None
    what: str


@dataclass(slots=True)
class Report:
    checks: dict[str, int] = field(default_factory=dict)  # check -> violations found
    violations: list[Violation] = field(default_factory=list)  # the first of each check

    def note(self, check: str, found: list[Violation]) -> None:
        self.checks[check] = self.checks.get(check, 0) + len(found)
        self.violations += found[:20]

    @property
    def total(self) -> int:
        return sum(self.checks.values())
