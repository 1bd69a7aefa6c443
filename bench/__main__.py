"""python -m bench [--rounds N] [--only web,purchases,…]: a table, a plot, and the figures as JSON."""

import argparse
import asyncio
import json
import os
import platform
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.browse import browse_figures
from bench.facts import fact_figures
from bench.figure import Figure
from bench.http_holds import web_figures
from bench.mail import letter_figures
from bench.maps import map_figures
from bench.pages import page_figures
from bench.plot import plot
from bench.postgres_batches import ledger_figures
from bench.purchases import purchase_figures
from bench.redis_claims import claim_figures
from bench.search import search_figures
from bench.viewers import viewer_figures

RESULTS = Path(__file__).parent / "results"
PARTS = {
    "web": web_figures,
    "ledger": ledger_figures,
    "claims": claim_figures,
    "purchases": purchase_figures,
    "facts": fact_figures,
    "search": search_figures,
    "viewers": viewer_figures,
    "maps": map_figures,
    "letters": letter_figures,
    "browse": browse_figures,
    "pages": page_figures,
}


def main() -> None:
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each figure; the median counts")
    parser.add_argument("--only", default=",".join(PARTS), help="which parts, with commas")
    asked = parser.parse_args()
    found: dict[str, list[Figure]] = {}
    with Progress(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        line = progress.add_task("starting")
        for part in asked.only.split(","):
            found[part] = asyncio.run(
                PARTS[part](asked.rounds, lambda text: progress.update(line, description=text))
            )
    show([figure for figures in found.values() for figure in figures])
    keep(found)


def keep(found: dict[str, list[Figure]]) -> None:
    """Into the results, beside what other parts had when they were last run."""
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / "figures.json"
    before = json.loads(kept.read_text()) if kept.exists() else {}
    by_part = {part: [figure_of(told) for told in figures] for part, figures in before.items()} | found
    ordered = {part: by_part[part] for part in PARTS if part in by_part}
    told = {part: [page(figure) for figure in figures] for part, figures in ordered.items()}
    kept.write_text(json.dumps(told, indent=2) + "\n")
    every = [figure for figures in ordered.values() for figure in figures]
    (RESULTS / "figures.md").write_text(markdown(every))
    plot(every, RESULTS / "figures.svg", RESULTS / "figures.png")


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def show(found: list[Figure]) -> None:
    table = Table(title=f"Holdfast on {machine()}; everything on the same machine")
    for name in ("figure", "ours", "reference", "ratio", "range", "bar", "goal", ""):
        table.add_column(name, justify="left" if name in ("figure", "reference") else "right")
    for f in found:
        low, high = min(f.ratios), max(f.ratios)
        table.add_row(
            f"{f.name} {f.note}".strip(),
            f"{f.ours:,.0f} {f.unit}",
            f"{f.theirs:,.0f}  {f.reference}",
            f"{f.ratio:.2f}",
            f"{low:.2f}–{high:.2f}",
            f"{f.bar:.2f}",
            f"{f.goal:.2f}" if f.goal else "",
            "reached" if f.is_reached else "MISSED",
        )
    Console(width=180).print(table)


def markdown(found: list[Figure]) -> str:
    lines = [f"Measured on {machine()}; load, server and engines share them.", ""]
    lines += ["| figure | ours | reference | ratio (range) | bar |", "|---|--:|---|--:|--:|"]
    for f in found:
        ratio = f"{f.ratio:.2f} ({min(f.ratios):.2f}–{max(f.ratios):.2f})"
        reference = f"{f.theirs:,.0f}, {f.reference}"
        unit = "a second" if f.unit.endswith("/s") else f.unit
        lines.append(f"| {f.name.strip()} | {f.ours:,.0f} {unit} | {reference} | {ratio} | {f.bar:.2f} |")
    return "\n".join(lines) + "\n"


def figure_of(told: dict[str, Any]) -> Figure:
    """What page() has told."""
    runs = [(run["ours"], run["reference"]) for run in told["runs"]]
    named = {name: told[name] for name in ("name", "unit", "reference", "bar", "goal", "note")}
    return Figure(runs=runs, **named)


def page(f: Figure) -> dict[str, object]:
    return {
        "name": f.name.strip(),
        "unit": f.unit,
        "reference": f.reference,
        "runs": [{"ours": round(a, 1), "reference": round(b, 1)} for a, b in f.runs],
        "ratio": round(f.ratio, 3),
        "bar": f.bar,
        "goal": f.goal,
        "note": f.note,
    }


if __name__ == "__main__":
    main()
