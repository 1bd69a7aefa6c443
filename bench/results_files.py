"""The results of a bench: printed as tables, and written as JSON, Markdown and a plot."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.figure import Figure
from bench.http_holds import HOLD_CPU
from bench.plot import plot_figures

COLUMNS = ("figure", "ours", "reference", "ratio", "range", "bar", "goal", "")


def print_figures(figures: Sequence[Figure]) -> None:
    table = Table(title=f"Holdfast on {describe_machine()}; everything on the same machine")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("figure", "reference") else "right")
    for each in figures:
        name = f"{each.name} {each.note}".strip()
        if not each.is_measured:
            table.add_row(name, "", each.reference, "", "", f"{each.bar:.2f}", "", "not measured")
            continue
        table.add_row(
            name,
            f"{each.ours:,.0f} {each.unit}",
            f"{each.theirs:,.0f}  {each.reference}",
            f"{each.ratio:.2f}",
            f"{min(each.ratios):.2f}–{max(each.ratios):.2f}",
            f"{each.bar:.2f}",
            f"{each.goal:.2f}" if each.goal else "",
            "reached" if each.is_reached else "MISSED",
        )
    Console(width=180).print(table)


def print_hold_cpu(results: Path) -> None:
    if not (rows := load_hold_cpu(results)):
        return
    table = Table("process", title="CPU time per hold")
    table.add_column("µs per hold", justify="right")
    for name, used_us in rows.items():
        table.add_row(name, f"{used_us:,.0f}")
    Console().print(table)


def load_hold_cpu(results: Path) -> dict[str, float]:
    """CPU µs per hold by process group, with their sum; empty if never measured."""
    file = results / HOLD_CPU
    if not file.exists():
        return {}
    rows: dict[str, float] = json.loads(file.read_text())
    return rows | {"sum": sum(rows.values())}


def write_figures(found: Mapping[str, list[Figure]], parts: Sequence[str], results: Path) -> None:
    """Write these parts' figures; other parts keep those of their last run."""
    file = results / "figures.json"
    before: dict[str, list[dict[str, Any]]] = json.loads(file.read_text()) if file.exists() else {}
    earlier = {part: [parse_figure(page) for page in pages] for part, pages in before.items()}
    merged = earlier | dict(found)
    ordered = {part: merged[part] for part in parts if part in merged}
    pages = {part: [render_figure(figure) for figure in figures] for part, figures in ordered.items()}
    file.write_text(json.dumps(pages, indent=2) + "\n")
    figures = [figure for each in ordered.values() for figure in each]
    (results / "figures.md").write_text(render_markdown(figures, load_hold_cpu(results)))
    plot_figures([figure for figure in figures if figure.is_measured], results)


def render_markdown(figures: Sequence[Figure], hold_cpu: Mapping[str, float]) -> str:
    lines = [f"Measured on {describe_machine()}; load, server and engines share them.", ""]
    lines += ["| figure | ours | reference | ratio (range) | bar |", "|---|--:|---|--:|--:|"]
    lines += [_markdown_row(figure) for figure in figures]
    if hold_cpu:
        lines += [
            "",
            "CPU time per hold of two seats, by process:",
            "",
            "| process | µs per hold |",
            "|---|--:|",
        ]
        lines += [f"| {name} | {used_us:,.0f} |" for name, used_us in hold_cpu.items()]
    return "\n".join(lines) + "\n"


def _markdown_row(figure: Figure) -> str:
    if not figure.is_measured:
        reason = f"not measured: {figure.not_measured}"
        return f"| {figure.name} | {reason} | {figure.reference} |  | {figure.bar:.2f} |"
    ratio = f"{figure.ratio:.2f} ({min(figure.ratios):.2f}–{max(figure.ratios):.2f})"
    reference = f"{figure.theirs:,.0f}, {figure.reference}"
    unit = "per second" if figure.unit.endswith("/s") else figure.unit
    return f"| {figure.name} | {figure.ours:,.0f} {unit} | {reference} | {ratio} | {figure.bar:.2f} |"


def describe_machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def render_figure(figure: Figure) -> dict[str, object]:
    page: dict[str, object] = {
        "name": figure.name,
        "unit": figure.unit,
        "reference": figure.reference,
        "runs": [{"ours": round(a, 1), "reference": round(b, 1)} for a, b in figure.runs],
        "ratio": round(figure.ratio, 3) if figure.is_measured else None,
        "bar": figure.bar,
        "goal": figure.goal,
        "note": figure.note,
    }
    return page if figure.is_measured else page | {"not_measured": figure.not_measured}


def parse_figure(page: Mapping[str, Any]) -> Figure:
    """The inverse of render_figure."""
    runs = [(run["ours"], run["reference"]) for run in page["runs"]]
    fields = {name: page[name] for name in ("name", "unit", "reference", "bar", "goal", "note")}
    return Figure(runs=runs, not_measured=page.get("not_measured", ""), **fields)
