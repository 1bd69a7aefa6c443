"""Rehearse an on-sale: simulate it, compute the machines it needs, drive it against a real installation.

    scenario.py    what is known beforehand: people, seats, times
    population.py  seeded draws: who comes when, for how many seats
    sale.py        the events of one sale, in order of time; hunters.py: people who found no seats
    record.py      what happened; outcome.py: its percentiles and shares; plot.py: the same as a picture
    capacity.py    a demand as cores, memory, disk, bandwidth, cost; coefficients.py: what one purchase costs
    rehearsal.py   a small on-sale against a running installation: buyers.py, stage.py; bottleneck.py judges

numpy and matplotlib come with `pip install holdfast[simulation]`; only the commands import this folder.
"""

from holdfast.simulation.capacity import Workload
from holdfast.simulation.rehearsal_options import RehearsalOptions
from holdfast.simulation.scenario import Scenario

__all__ = ["RehearsalOptions", "Scenario", "Workload"]
