"""The comparison as a table on the terminal, as Markdown and JSON, and as a plot."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.peers.compare import Comparison
from bench.plot import OURS, load_pyplot, save_plot
from bench.results_files import describe_machine

COLUMNS = ("journey", "Holdfast", "p50, p99", "pretix", "p50, p99", "ratio", "range")


@dataclass(frozen=True)
class Conditions:
    """What the figures depend on."""

    connections: int
    seconds: float
    rounds: int
    workers: Mapping[str, int]  # web workers by system
    versions: Mapping[str, str]
    seats_sold: Mapping[str, int]  # in all rounds
    seats_sold_twice: Mapping[str, int]


def render_row(each: Comparison) -> list[str]:
    figure = each.figure
    if not figure.is_measured:
        return [figure.name, "not measured", "", figure.not_measured, "", "", ""]
    return [
        figure.name,
        f"{figure.ours:,.0f} per second",
        render_times(*each.percentiles(0)),
        f"{figure.theirs:,.1f} per second",
        render_times(*each.percentiles(1)),
        f"{figure.ratio:,.0f}",
        f"{min(figure.ratios):,.0f}–{max(figure.ratios):,.0f}",
    ]


def render_times(p50_ms: float, p99_ms: float) -> str:
    return f"{render_time(p50_ms)}, {render_time(p99_ms)}"


def render_time(took_ms: float) -> str:
    return f"{took_ms:.0f} ms" if took_ms < 1000 else f"{took_ms / 1000:.1f} s"


def print_comparison(found: Sequence[Comparison], conditions: Conditions) -> None:
    table = Table(title=f"Holdfast and pretix {conditions.versions['pretix']} on {describe_machine()}")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name == "journey" else "right")
    for each in found:
        table.add_row(*render_row(each))
    Console(width=180).print(table)


def render_markdown(found: Sequence[Comparison], conditions: Conditions) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in conditions.versions.items())
    workers = ", ".join(f"{name} {count}" for name, count in conditions.workers.items())
    sold = ", ".join(
        f"{name} {count:,} (twice: {conditions.seats_sold_twice[name]})"
        for name, count in conditions.seats_sold.items()
    )
    lines = [f"Measured on {describe_machine()}; load, servers and engines share them."]
    lines += [f"{conditions.connections} connections, median of {conditions.rounds} rounds.", ""]
    lines += [f"| {' | '.join(COLUMNS)} |", "|---" + "|--:" * (len(COLUMNS) - 1) + "|"]
    lines += [f"| {' | '.join(render_row(each))} |" for each in found]
    lines += ["", f"Versions: {versions}.", f"Web workers: {workers}.", f"Seats sold: {sold}."]
    return "\n".join(lines) + "\n"


def render_page(found: Sequence[Comparison], conditions: Conditions) -> dict[str, Any]:
    return {
        "machine": describe_machine(),
        "connections": conditions.connections,
        "seconds_per_run": conditions.seconds,
        "rounds": conditions.rounds,
        "web_workers": dict(conditions.workers),
        "versions": dict(conditions.versions),
        "seats_sold": dict(conditions.seats_sold),
        "seats_sold_twice": dict(conditions.seats_sold_twice),
        "journeys": [_render_journey(each) for each in found],
    }


def _render_journey(each: Comparison) -> dict[str, Any]:
    if not each.figure.is_measured:
        return {"name": each.figure.name, "not_measured": each.figure.not_measured}
    page: dict[str, Any] = {"name": each.figure.name, "ratio": round(each.figure.ratio, 1)}
    counted = each.reports[: len(each.figure.runs)]
    for side, system in enumerate(("holdfast", "pretix")):
        page[system] = [
            {
                "per_second": round(each.figure.runs[number][side], 1),
                "p50_ms": round(pair[side].p50_ms, 1),
                "p99_ms": round(pair[side].p99_ms, 1),
                "outcomes": pair[side].outcomes,
                "load_generator_cores": round(pair[side].client_cores, 2),
            }
            for number, pair in enumerate(counted)
        ]
    return page


def write_comparison(found: Sequence[Comparison], conditions: Conditions, results: Path) -> None:
    (results / "peers.md").write_text(render_markdown(found, conditions))
    (results / "peers.json").write_text(json.dumps(render_page(found, conditions), indent=2) + "\n")
    plot_ratios([each for each in found if each.figure.is_measured], conditions, results)


def plot_ratios(found: Sequence[Comparison], conditions: Conditions, results: Path) -> None:
    """How many times as many journeys per second; the axis is logarithmic."""
    if not found:
        return
    picture, axis = load_pyplot().subplots(figsize=(9, 0.55 * len(found) + 1.2), layout="constrained")
    for row, each in enumerate(found):
        figure = each.figure
        axis.barh(row, figure.ratio, color=OURS, height=0.55)
        axis.plot([min(figure.ratios), max(figure.ratios)], [row, row], color="black", linewidth=1.2)
        text = f"{figure.ours:,.0f} against {figure.theirs:,.0f} per second"
        axis.text(1.1, row, text, va="center", color="white", fontweight="bold", fontsize=8)
    axis.set_xscale("log")
    axis.set_xlim(left=1)
    axis.xaxis.set_major_formatter("{x:.0f}")
    axis.set_yticks(range(len(found)), [each.figure.name for each in found], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel(
        f"Holdfast's rate over that of pretix {conditions.versions['pretix']}, same machine and load"
    )
    axis.spines[["top", "right"]].set_visible(False)
    save_plot(picture, results, "peers")
