"""A figure: Holdfast against a reference of the same run, several times. The median ratio counts."""

from dataclasses import dataclass, field
from statistics import median


@dataclass
class Figure:
    name: str
    unit: str
    reference: str  # what it is compared with
    bar: float  # the ratio that must be reached
    goal: float | None = None
    runs: list[tuple[float, float]] = field(default_factory=list)  # ours, the reference's
    note: str = ""
    not_measured: str = ""  # why there are no runs

    def add(self, ours: float, theirs: float) -> None:
        self.runs.append((ours, theirs))

    @property
    def is_measured(self) -> bool:
        return bool(self.runs)

    @property
    def ratios(self) -> list[float]:
        return [ours / theirs for ours, theirs in self.runs]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def ours(self) -> float:
        return median(ours for ours, _ in self.runs)

    @property
    def theirs(self) -> float:
        return median(theirs for _, theirs in self.runs)

    @property
    def is_reached(self) -> bool:
        return self.ratio >= self.bar
