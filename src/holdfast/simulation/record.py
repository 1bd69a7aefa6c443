"""What happened in a simulated sale, as it happened: the events write it, `outcome.py` reads it."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from holdfast.simulation.population import Population
    from holdfast.simulation.scenario import Scenario


class Record:
    def __init__(self, scenario: "Scenario", people: "Population") -> None:
        self.scenario = scenario
        self.people = people
        self.admitted_at = np.full(len(people), np.nan)  # of each person; nan: never
        self.left_at: list[float] = []  # of people who were admitted
        self.sold_to: list[int] = []
        self.sold_at: list[float] = []
        self.seats_sold = 0
        self.free_at: list[tuple[float, int]] = [(0.0, scenario.seats)]  # free seats from then on
        self.holds = self.refused = self.lapsed = self.declined = 0
        self.inside_most = self.paying_most = 0
        self.ended_s = 0.0

    def admit(self, person: int, at_s: float, inside: int) -> None:
        self.admitted_at[person] = at_s
        self.inside_most = max(self.inside_most, inside)

    def hold(self, at_s: float, free: int) -> None:
        self.holds += 1
        self.free_at.append((at_s, free))

    def lapse(self, at_s: float, free: int) -> None:
        self.lapsed += 1
        self.free_at.append((at_s, free))

    def sell(self, person: int, at_s: float) -> None:
        self.sold_to.append(person)
        self.sold_at.append(at_s)
        self.seats_sold += self.people.size.item(person)
