"""Seeded draws: who comes when and for how many seats, and how long each step takes them.

Each purpose has a random stream of its own, so that another decline rate does not change who arrives when:
two scenarios that differ in one number differ because of that number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from holdfast.simulation.scenario import Scenario

BLOCK = 8192  # draws per call of numpy

# Programs: they choose at once, try twice per second, and pay within seconds.
BOT_CHOOSE_S = 0.2
BOT_RETRY_S = 0.5
BOT_CHECKOUT_S = 2.0

STREAMS: tuple[str, ...] = (
    "arrivals",
    "kinds",
    "sizes",
    "choosing",
    "checkout",
    "abandoning",
    "paying",
    "declines",
)
STREAMS += ("hunting", "picking", "turns")


@dataclass(frozen=True)
class Population:
    """In the order of the queue: the draw of those who were early, then the others as they came."""

    arrive_s: "NDArray[np.float64]"  # 0: was there when the sale opened
    is_bot: "NDArray[np.bool_]"
    size: "NDArray[np.uint8]"

    def __len__(self) -> int:
        return len(self.arrive_s)


def seed_streams(seed: int) -> dict[str, np.random.Generator]:
    """One generator per purpose, by position in STREAMS: append new ones at the end."""
    children = np.random.SeedSequence(seed).spawn(len(STREAMS))
    return {
        name: np.random.Generator(np.random.PCG64(child))
        for name, child in zip(STREAMS, children, strict=True)
    }


def draw_population(scenario: "Scenario", streams: dict[str, np.random.Generator]) -> Population:
    bots = round(scenario.people * scenario.bots)
    fans = scenario.people - bots
    early_fans = int(streams["arrivals"].binomial(fans, scenario.early))
    late = _draw_late(scenario, fans - early_fans, streams["arrivals"])
    early = bots + early_fans
    is_bot = np.zeros(scenario.people, dtype=np.bool_)
    is_bot[:bots] = True
    streams["kinds"].shuffle(is_bot[:early])  # the draw: a bot has the same chance as a person
    sizes = np.array(list(scenario.sizes), dtype=np.uint8)
    chances = np.cumsum(list(scenario.sizes.values()))
    drawn = streams["sizes"].random(scenario.people)
    size = sizes[np.minimum(np.searchsorted(chances, drawn, side="right"), len(sizes) - 1)]
    size[is_bot] = sizes[-1]
    return Population(np.concatenate([np.zeros(early), late]), is_bot, size)


def _draw_late(scenario: "Scenario", count: int, stream: np.random.Generator) -> "NDArray[np.float64]":
    if scenario.arrivals == "uniform":
        times = stream.random(count) * scenario.arrive_s
    else:
        times = stream.standard_exponential(count) * scenario.arrive_s
    times.sort()
    return times


def draw_choosing(
    scenario: "Scenario", bots: "NDArray[np.bool_]", stream: np.random.Generator
) -> "NDArray[np.float64]":
    """How long each of many people looks at the map."""
    factor = np.exp(scenario.spread * stream.standard_normal(len(bots)))
    return factor * np.where(bots, BOT_CHOOSE_S, scenario.choose_s)


def uniform(stream: np.random.Generator) -> Iterator[float]:
    """Numbers in [0, 1), one at a time; drawn in blocks, because a call of numpy is slow."""
    while True:
        yield from stream.random(BLOCK).tolist()


def lognormal(stream: np.random.Generator, spread: float) -> Iterator[float]:
    """Factors with median 1."""
    while True:
        yield from np.exp(spread * stream.standard_normal(BLOCK)).tolist()


def exponential(stream: np.random.Generator) -> Iterator[float]:
    """Factors with mean 1."""
    while True:
        yield from stream.standard_exponential(BLOCK).tolist()
