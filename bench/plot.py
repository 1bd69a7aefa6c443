"""The figures as a plot: each ratio against its bar, with the range of the runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.figure import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Plot

OURS, BAR, GOAL = "#0072B2", "#D55E00", "#009E73"


def plot_figures(found: Sequence[Figure], results: Path) -> None:
    """Ratio over the bar, so that figures of different size share an axis: from 1 on, the bar is reached."""
    if not found:
        return
    picture, axis = load_pyplot().subplots(figsize=(9, 0.62 * len(found) + 1.4), layout="constrained")
    names = [f"{f.name}\nagainst {f.reference}" for f in found]
    for row, f in enumerate(found):
        low, high = min(f.ratios) / f.bar, max(f.ratios) / f.bar
        axis.barh(row, f.ratio / f.bar, color=OURS, height=0.55)
        axis.plot([low, high], [row, row], color="black", linewidth=1.2)
        axis.text(0.02, row, f"{f.ratio:.2f} ×", va="center", color="white", fontweight="bold", fontsize=9)
        if f.goal:
            axis.plot([f.goal / f.bar] * 2, [row - 0.3, row + 0.3], color=GOAL, linewidth=2)
    axis.axvline(1, color=BAR, linewidth=2)
    axis.set_yticks(range(len(found)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("ratio to the reference, over the ratio that must be reached (orange); goals in green")
    axis.spines[["top", "right"]].set_visible(False)
    save_plot(picture, results, "figures")


def plot_sold_out(at_s: Sequence[float], seats: int, results: Path) -> None:
    """Seats that are paid for, over the time since the sale opened."""
    picture, axis = load_pyplot().subplots(figsize=(9, 4), layout="constrained")
    ends = sorted(at_s)
    axis.plot([0, *ends], [0, *(2 * (i + 1) for i in range(len(ends)))], color=OURS, linewidth=2)
    axis.axhline(seats, color=GOAL, linewidth=1)
    axis.annotate(
        f"sold out after {ends[-1]:.1f} s",
        (ends[-1], seats),
        xytext=(-8, -16),
        textcoords="offset points",
        ha="right",
    )
    axis.set_xlabel("seconds since the sale opened")
    axis.set_ylabel("seats held, paid for and confirmed")
    axis.spines[["top", "right"]].set_visible(False)
    save_plot(picture, results, "sold_out")


def load_pyplot() -> Any:
    """Loaded when there is something to plot: it takes most of a second."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save_plot(picture: "Plot", results: Path, name: str) -> None:
    for kind in ("svg", "png"):
        picture.savefig(results / f"{name}.{kind}", dpi=150)
    load_pyplot().close(picture)
