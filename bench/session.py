"""One run of the bench: the options of the command line, and rounds that are repeated on a busy machine."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from bench.cpu import MachineTimes, read_machine, share_of_others
from bench.figure import Figure

ATTEMPTS_MAX = 3  # per round

Report = Callable[[str], None]


@dataclass(frozen=True)
class Session:
    rounds: int
    report: Report  # shows one line of progress
    results: Path
    busy_max: float = 0.1  # share of the machine that other programs may use during a round
    pause_s: float = 5.0  # before a round is repeated
    seconds_max: float | None = None  # shorter runs than the parts plan: only to see that the bench works

    def seconds(self, planned: float) -> float:
        return planned if self.seconds_max is None else min(planned, self.seconds_max)

    async def repeat(self, *figures: Figure) -> AsyncIterator[int]:
        """Number every attempt at a round from 0. Runs of an attempt on a busy machine are removed.

        A round is tried ATTEMPTS_MAX times. Attempts never share a number, so that each can use shows of
        its own. A figure without any run in the end says why.
        """
        attempts, shares = 0, [0.0]
        for _ in range(self.rounds):
            for attempt in range(ATTEMPTS_MAX):
                if attempt:
                    self.report(f"{describe_busy(shares[-1])}: the round is repeated")
                    await asyncio.sleep(self.pause_s)
                counts, before = [len(figure.runs) for figure in figures], read_machine()
                yield attempts
                attempts += 1
                share = share_of_others(before, read_machine())
                if share <= self.busy_max:
                    break
                shares.append(share)
                for figure, count in zip(figures, counts, strict=True):
                    del figure.runs[count:]
        for figure in figures:
            if not figure.runs:
                figure.not_measured = describe_busy(max(shares))

    def explain_busy(self, before: MachineTimes) -> str:
        """Why nothing that was measured since then counts; empty if the machine was quiet."""
        share = share_of_others(before, read_machine())
        return describe_busy(share) if share > self.busy_max else ""


def describe_busy(share: float) -> str:
    return f"the machine was busy ({share:.0%} by other processes)"
