"""The results as pictures: for people who cannot tell red from green, and for screens of a phone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.contest.faults import SCENARIOS
from lab.results_file import Results, middle
from lab.strategies import NAMES, find_strategy

# The colours of Okabe and Ito.
BLUE, ORANGE, VERMILION, GREEN, SKY, PURPLE, GREY = (
    "#0072B2",
    "#E69F00",
    "#D55E00",
    "#009E73",
    "#56B4E9",
    "#CC79A7",
    "#767676",
)
LINES = {
    "holdfast": (BLUE, "o"),
    "seat_keys_unique": (SKY, "D"),
    "redis_lock": (ORANGE, "s"),
    "redlock": (VERMILION, "X"),
    "unique_key": (GREEN, "^"),
    "for_update": (PURPLE, "v"),
}
COUNTS = (1, 10, 100, 1000)  # clients
LABEL_STEP = 1.22  # of two neighbouring labels, on the logarithmic axis
WIDTH = 6.4  # inches: of a phone, at a size that needs no zooming
SHORT_TITLES = (
    "race",
    "client\nstopped",
    "slow\npayment",
    "Redis\nkilled",
    "Redis\nflushed",
    "fail-\nover",
    "clock",
)


def plot_results(results: Results, folder: Path) -> None:
    plot_faults(results, folder)
    plot_clients(results, folder)
    plot_sales(results, folder)


def plot_faults(results: Results, folder: Path) -> None:
    """A grid: what each strategy does to its buyers in each scenario."""
    names = [name for name in NAMES if any(results.duel(name, s.name) for s in SCENARIOS)]
    if not names:
        return
    picture, axis = _pyplot().subplots(figsize=(WIDTH, 0.44 * len(names) + 1.7), layout="constrained")
    for row, name in enumerate(names):
        for column, scenario in enumerate(SCENARIOS):
            _draw_cell(axis, (column, row), results.duel(name, scenario.name))
    axis.set_xticks(range(len(SCENARIOS)), SHORT_TITLES, fontsize=9)
    axis.xaxis.tick_top()
    axis.set_yticks(range(len(names)), [find_strategy(name).title for name in names], fontsize=10)
    axis.set_xlim(-0.5, len(SCENARIOS) - 0.5)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
    axis.set_xlabel(
        "2×: seats sold twice · lost: acknowledged holds broken\n"
        "paid: late payers without a seat · 0: none · –: not tried"
    )
    _save(picture, folder, "faults")


def _draw_cell(axis: Any, at: tuple[int, int], rows: Sequence[Any]) -> None:
    twice = max((row.double_sales for row in rows), default=0)
    lost = max((row.lost_holds for row in rows), default=0)
    paid = max((row.paid_for_nothing for row in rows), default=0)
    text, colour = ("0", "#F4F4F4") if rows else ("–", "white")
    if twice:
        text, colour = f"{twice}×", VERMILION
    elif lost:
        text, colour = f"{lost} lost", "#F5C85B"
    elif paid:
        text, colour = f"{paid} paid", "#CFE3F0"
    axis.add_patch(_pyplot().Rectangle((at[0] - 0.47, at[1] - 0.45), 0.94, 0.9, color=colour, linewidth=0))
    weight, ink = ("bold", "white") if twice else ("normal", "black")
    axis.text(*at, text, ha="center", va="center", fontsize=10, fontweight=weight, color=ink)


def plot_clients(results: Results, folder: Path) -> None:
    """Answers per second from 1 to 1 000 clients who want the same seat."""
    picture, axis = _pyplot().subplots(figsize=(WIDTH, 5.6), layout="constrained")
    ends: list[tuple[float, str]] = []
    for name, (colour, marker) in LINES.items():
        points = [
            (clients, middle(rounds, lambda r: r.answers_per_s))
            for clients in COUNTS
            if (rounds := results.crowd(name, 1, clients))
        ]
        if points:
            axis.plot(*zip(*points, strict=True), color=colour, marker=marker, linewidth=2.2, markersize=7)
            ends.append((points[-1][1], name))
    axis.set_xscale("log")
    axis.set_yscale("log")
    _label_ends(axis, sorted(ends))
    axis.set_xlim(0.8, 20_000)
    axis.set_xticks(COUNTS, [f"{count:,}" for count in COUNTS], fontsize=11)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.tick_params(axis="y", labelsize=11)
    axis.minorticks_off()
    axis.set_xlabel("clients who want the same seat", fontsize=11)
    axis.set_ylabel("answers per second", fontsize=11)
    axis.grid(axis="y", color="#DDDDDD")
    axis.spines[["top", "right"]].set_visible(False)
    _save(picture, folder, "clients")


def _label_ends(axis: Any, ends: Sequence[tuple[float, str]]) -> None:
    """Names at the right end of the lines, from the lowest up, each at least a line above the one before."""
    above = 0.0
    for value, name in ends:
        at = max(value, above)
        above = at * LABEL_STEP
        axis.text(1350, at, find_strategy(name).title, va="center", fontsize=10, color=LINES[name][0])


def plot_sales(results: Results, folder: Path) -> None:
    """Sales per second and the slowest answers, with 1 000 clients on 200 seats."""
    names = [name for name in NAMES if results.crowd(name, 200, 1000)]
    if not names:
        return
    size = (WIDTH, 0.36 * len(names) * 2 + 2)
    picture, axes = _pyplot().subplots(2, 1, figsize=size, layout="constrained")
    parts = (
        (axes[0], "sales per second, 1 000 clients on 200 seats", lambda r: r.sales_per_s, ",.0f"),
        (axes[1], "ms until 99 of 100 clients had their answer", lambda r: r.p99_ms, ",.0f"),
    )
    for axis, title, figure, form in parts:
        values = [middle(results.crowd(name, 200, 1000), figure) for name in names]
        colours = [BLUE if name == "holdfast" else GREY for name in names]
        axis.barh(range(len(names)), values, color=colours, height=0.7)
        for row, value in enumerate(values):
            axis.text(value, row, f" {value:{form}}", va="center", fontsize=10)
        axis.set_yticks(range(len(names)), [find_strategy(name).title for name in names], fontsize=10)
        axis.invert_yaxis()
        axis.set_title(title, fontsize=11, loc="left")
        axis.set_xlim(0, max(values) * 1.18)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(axis="x", labelsize=9)
    _save(picture, folder, "sales")


def _pyplot() -> Any:
    """Loaded when there is something to plot: it takes most of a second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _save(picture: Any, folder: Path, name: str) -> None:
    picture.savefig(folder / f"{name}.png", dpi=150)
    _pyplot().close(picture)
