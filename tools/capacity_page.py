"""Write docs/capacity.md and its pictures: every figure on the page is the output of a command.

python -m tools.capacity_page        also part of `make docs`; a test compares the page with the commands
"""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from holdfast.cli.main import cli

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "capacity.md"
PICTURES = ROOT / "docs" / "pictures"

INTRO = """\
# Capacity

How many machines a demand needs, and why. `holdfast capacity` computes it from a table of measured costs
and shows every step; `holdfast simulate onsale` ([simulation.md](simulation.md)) says what people see.
Each block below is the output of the command above it: `make docs` writes this page, and a test runs the
commands again.

Read the result as an order of magnitude. The coefficients were measured on two cores that also ran the load
generator, so your cores do more. Prices, and everything marked "assumed", are yours to replace. At least two
machines are needed to survive the failure of one, whatever the arithmetic says.
"""

CLUB = """\
A club concert. Five hundred people want each seat, so almost every request is a refusal. Without a waiting
room all of them arrive within seconds, refusals are the load, and bots are the fastest. The second simulation
has a waiting room."""

HALL = """\
The load is polling, which nginx answers; the sale itself is a fraction of a core. The waiting room lets
fewer people in than there are seats, so that a fast finger is worth little."""

STADIUM = """\
The admission rate decides how long it takes, and the payment gateway decides how fast one may admit: 128
payments at once of two seconds each are 64 per second, so 50 people per second leave it some room."""

BROWSE = """\
Everybody looks, few buy. nginx answers from its cache; bandwidth is what costs. Names of static files change
with their content, so a second visit sends less than this."""

MONTH = """\
A national ticket seller (R38). A common estimate for it is 3.6 TB in five years, which is 6 kB per ticket.
Here a booking of two seats takes less, with its payment, journal, tickets, moves and all indexes."""

DAY = "About the same size, by other figures (R38)."

PEOPLE_200 = "holdfast simulate onsale --people 100000 --seats 200 --bots 0.05"
PEOPLE_300 = "holdfast simulate onsale --people 500000 --seats 300 --bots 0.05"
PEOPLE_60000 = "holdfast simulate onsale --people 2000000 --seats 60000 --bots 0.1"


@dataclass(frozen=True)
class Example:
    title: str
    about: str
    commands: tuple[str, ...]
    picture: str  # of the last command


EXAMPLES = (
    Example(
        "100 000 people, 200 seats",
        CLUB,
        (
            "holdfast capacity --people 100000 --seats 200 --no-waiting-room",
            f"{PEOPLE_200} --no-waiting-room",
            f"{PEOPLE_200} --admit-per-s 1 --inside-max 40",
        ),
        "onsale-200",
    ),
    Example(
        "500 000 people, 300 seats",
        HALL,
        (
            "holdfast capacity --people 500000 --seats 300",
            f"{PEOPLE_300} --admit-per-s 1 --inside-max 60",
        ),
        "onsale-300",
    ),
    Example(
        "2 000 000 people, 60 000 seats",
        STADIUM,
        (
            "holdfast capacity --people 2000000 --seats 60000 --sale-s 1800",
            f"{PEOPLE_60000} --admit-per-s 50 --inside-max 20000",
        ),
        "onsale-60000",
    ),
    Example(
        "50 000 page views per second",
        BROWSE,
        ("holdfast capacity --browse-per-s 50000",),
        "capacity-browse",
    ),
    Example(
        "3 000 000 000 page views and 10 000 000 tickets per month",
        MONTH,
        ("holdfast capacity --page-views-month 3000000000 --tickets-month 10000000 --years 5",),
        "capacity-month",
    ),
    Example(
        "1 000 000 bookings per day, 500 000 people at the same time",
        DAY,
        ("holdfast capacity --bookings-day 1000000 --users 500000",),
        "capacity-day",
    ),
)


def render() -> str:
    parts = [INTRO]
    for example in EXAMPLES:
        parts.append(f"## {example.title}\n\n{example.about}\n")
        parts += [f"```sh\n{command}\n```\n\n```text\n{run(command)}```\n" for command in example.commands]
        parts.append(f"![{example.title}](pictures/{example.picture}.png)\n")
    parts.append(
        "## Coefficients\n\nWhat the arithmetic starts from, and where each figure comes from: files are in"
    )
    parts[-1] += " [bench/results](../bench/results), written by `make bench`.\n"
    command = "holdfast capacity --coefficients"
    parts.append(f"```sh\n{command}\n```\n\n```text\n{run(command)}```\n")
    return "\n".join(parts)


def run(command: str, *more: str) -> str:
    """Its output on stdout, run in this process."""
    _, *words = shlex.split(command)
    ended = CliRunner().invoke(cli, [*words, *more])
    if ended.exit_code:
        raise RuntimeError(f"{command}: {ended.output} {ended.exception}")
    return ended.stdout


def write_pictures() -> None:
    for example in EXAMPLES:
        run(example.commands[-1], "--output", str(PICTURES / f"{example.picture}.png"))


def main() -> int:
    text = render()
    if not PAGE.exists() or PAGE.read_text() != text:
        PAGE.write_text(text)
        write_pictures()
        print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
