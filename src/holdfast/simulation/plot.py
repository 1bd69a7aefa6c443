"""A simulated sale as a picture: seats above, people below. Colours of Okabe and Ito, which colour-blind
people can tell apart; every line has its name beside it and a dash pattern of its own; type for a phone."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.simulation.capacity import show
from holdfast.simulation.outcome import clock

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from holdfast.simulation.capacity import Section
    from holdfast.simulation.record import Record

BLUE, ORANGE, GREEN, BLACK = "#0072B2", "#D55E00", "#009E73", "#000000"
POINTS = 400  # of a line: more cannot be seen, and make the file large
KINDS = (".svg", ".png")
TYPE_SIZE = 14


def plot_sale(record: "Record", file: Path) -> None:
    pyplot = load_pyplot()
    picture, (seats, people) = pyplot.subplots(2, 1, figsize=(6, 8), layout="constrained")
    end_s = _last_event_s(record)
    at_s = np.linspace(0, end_s, POINTS)
    unit, name = _unit(end_s)
    free = _steps([each[0] for each in record.free_at], [each[1] for each in record.free_at], at_s)
    sizes = record.people.size[np.array(record.sold_to, dtype=np.int64)]
    sold = _steps([0.0, *record.sold_at], np.concatenate([[0], np.cumsum(sizes)]), at_s)
    total = record.scenario.seats
    _line(seats, at_s / unit, sold, "sold", GREEN, "-")
    _line(seats, at_s / unit, total - free - sold, "held", ORANGE, "--")
    _line(seats, at_s / unit, free, "free", BLUE, ":")
    _finish(seats, "seats")
    picture.suptitle(f"{len(record.people):,} people, {total:,} seats", fontsize=TYPE_SIZE)

    came = np.searchsorted(record.people.arrive_s, at_s, side="right")
    admitted = np.sort(record.admitted_at[~np.isnan(record.admitted_at)])
    inside = np.searchsorted(admitted, at_s, side="right") - np.searchsorted(
        np.sort(record.left_at), at_s, side="right"
    )
    if record.scenario.waiting_room:
        waiting = came - np.searchsorted(admitted, at_s, side="right")
        _line(people, at_s / unit, waiting, "waiting", BLUE, "-")
        _line(people, at_s / unit, inside, "inside", ORANGE, "--")
    else:
        _line(people, at_s / unit, came, "arrived", BLUE, "-")
    bought = np.searchsorted(np.array(record.sold_at), at_s, side="right")
    _line(people, at_s / unit, bought, "with tickets", GREEN, "-.")
    people.set_yscale("symlog", linthresh=1)
    _finish(people, "people (log. scale)")
    people.set_xlabel(f"{name} since the sale opened")
    if record.seats_sold == total:
        seats.axvline(record.ended_s / unit, color=BLACK, linewidth=1)
        seats.annotate(
            f"sold out after {clock(record.ended_s)}",
            (record.ended_s / unit, total / 2),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
        )
    save(picture, file)


def plot_cores(sections: "list[Section]", file: Path) -> None:
    """Where the processor time of a demand goes."""
    [section] = [each for each in sections if each.name == "Cores"]
    parts = [line for line in section.lines if line.unit == "cores" and line.name != "cores"]
    picture, axis = load_pyplot().subplots(figsize=(6, 1.4 + 0.9 * len(parts)), layout="constrained")
    most = max(part.value for part in parts)
    for row, part in enumerate(parts):
        axis.barh(row, part.value, color=BLUE, height=0.4)
        axis.text(0, row - 0.28, part.name, va="bottom")
        axis.text(part.value + most * 0.02, row, show(part.value), va="center")
    axis.set_xlim(0, most * 1.25)
    axis.set_ylim(len(parts) - 0.6, -0.8)
    axis.set_yticks([])
    axis.set_xlabel("cores in use at the peak")
    axis.spines[["top", "right", "left"]].set_visible(False)
    save(picture, file)


def load_pyplot() -> Any:
    """Without a display, and with the same file for the same picture: no dates, no random ids."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": TYPE_SIZE, "svg.hashsalt": "holdfast", "svg.fonttype": "path"})
    return pyplot


def save(picture: Any, file: Path) -> None:
    metadata = {"Date": None} if file.suffix == ".svg" else {"Software": None}
    picture.savefig(file, dpi=150, metadata=metadata)
    load_pyplot().close(picture)


def _last_event_s(record: "Record") -> float:
    """A sale that does not sell out is drawn until its last event, not until the end of the simulation."""
    if record.seats_sold == record.scenario.seats:
        return max(record.ended_s, 0.001)
    last_s = max([0.001, *record.sold_at[-1:], record.free_at[-1][0], *record.left_at[-1:]])
    return min(last_s, record.ended_s)


def _unit(end_s: float) -> tuple[float, str]:
    return (60.0, "minutes") if end_s > 180 else (1.0, "seconds")


def _steps(times: Any, values: Any, at_s: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """The last value at or before each instant."""
    places = np.searchsorted(np.asarray(times), at_s, side="right") - 1
    found: NDArray[np.float64] = np.asarray(values, dtype=np.float64)[places]
    return found


def _line(axis: "Axes", x: Any, y: Any, name: str, colour: str, dashes: str) -> None:
    axis.plot(x, y, dashes, color=colour, linewidth=2.5, label=name)


def _finish(axis: "Axes", name: str) -> None:
    axis.set_ylabel(name)
    axis.spines[["top", "right"]].set_visible(False)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.grid(axis="y", alpha=0.3)
    axis.set_ylim(bottom=0)
    axis.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=3, frameon=False, handlelength=1.8)
