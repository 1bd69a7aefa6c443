"""The tables of the lab in Markdown. No I/O."""

from collections.abc import Callable, Iterator, Sequence

from lab.contest.crowd import CELLS, STADIUM, CrowdResult
from lab.contest.faults import SCENARIOS
from lab.results_file import DuelRow, Results, middle
from lab.strategies import NAMES, find_strategy

OFFERS = {1: "one seat", 200: "200 seats", STADIUM: f"a stadium with {STADIUM:,} seats"}
CROWD_MAX = 1000
COLUMNS: tuple[tuple[str, Callable[[CrowdResult], float], str], ...] = (
    ("answers/s", lambda r: r.answers_per_s, ",.0f"),
    ("sales/s", lambda r: r.sales_per_s, ",.0f"),
    ("p50 ms", lambda r: r.p50_ms, ",.1f"),
    ("p99 ms", lambda r: r.p99_ms, ",.1f"),
    ("retries per sale", lambda r: r.retries_per_sale, ",.1f"),
    ("fairness", lambda r: r.fairness, ".2f"),
    ("SQL per sale", lambda r: r.statements_per_sale, ",.1f"),
    ("Redis commands per sale", lambda r: r.redis_commands_per_sale, ",.1f"),
    ("CPU ms per sale", lambda r: sum(r.cpu_us_per_sale.values()) / 1000, ",.2f"),
)


def faults_table(results: Results, count: Callable[[DuelRow], int]) -> str:
    """Strategies by scenarios; the worst round counts. A dash: the strategy does not use Redis."""
    names = [scenario.title for scenario in SCENARIOS]
    lines = [_row(["strategy", *names]), _rule(len(names))]
    for name in NAMES:
        cells = [_fault_cell(results.duel(name, scenario.name), count) for scenario in SCENARIOS]
        if any(results.duel(name, scenario.name) for scenario in SCENARIOS):
            lines.append(_row([_title(name), *cells]))
    return "\n".join(lines)


def _fault_cell(rows: Sequence[DuelRow], count: Callable[[DuelRow], int]) -> str:
    if not rows:
        return "–"
    worst = max(count(row) for row in rows)
    return f"**{worst}** of {rows[0].attacked}" if worst else "0"


def crowd_table(results: Results, offer: int, clients: int) -> str:
    names = [name for name, _, _ in COLUMNS]
    lines = [_row(["strategy", "sold twice", *names]), _rule(len(names) + 1)]
    for name in NAMES:
        if rounds := results.crowd(name, offer, clients):
            twice = max(result.verdict.double_sales for result in rounds)
            figures = [f"{middle(rounds, figure):{form}}" for _, figure, form in COLUMNS]
            lines.append(_row([_title(name), f"**{twice}**" if twice else "0", *figures]))
    return "\n".join(lines)


def crowd_tables(results: Results, clients: int = CROWD_MAX) -> str:
    parts = []
    for offer, text in OFFERS.items():
        parts += [f"{clients:,} clients, {text}:", "", crowd_table(results, offer, clients), ""]
    return "\n".join(parts).rstrip()


def every_table(results: Results) -> str:
    """The page of lab/results."""
    parts = ["# Results of the lab", "", provenance(results), "", "## Sold twice", ""]
    parts += [faults_table(results, lambda row: row.double_sales), "", "## Holds lost", ""]
    parts += [faults_table(results, lambda row: row.lost_holds), "", "## Paid for nothing", ""]
    parts += [faults_table(results, lambda row: row.paid_for_nothing), "", "## Load", ""]
    for cell in CELLS:
        parts += [
            f"{cell.clients:,} {'client' if cell.clients == 1 else 'clients'}, {OFFERS[cell.offer]}:",
            "",
        ]
        parts += [crowd_table(results, cell.offer, cell.clients), ""]
    return "\n".join(parts).rstrip() + "\n"


def provenance(results: Results) -> str:
    rounds = f"{results.rounds} rounds" if results.rounds != 1 else "one round"
    text = (
        f"Measured on {results.machine}; {results.versions}; {rounds}; clients and engines share the machine."
    )
    return " ".join([text, *(f"Not measured: {name}: {why}." for name, why in results.not_measured.items())])


def logs_text(results: Results) -> str:
    return "\n\n".join(_logs(results))


def _logs(results: Results) -> Iterator[str]:
    titles = {scenario.name: scenario.title for scenario in SCENARIOS}
    for log in results.logs:
        head = f"{find_strategy(log.strategy).title}: {titles[log.scenario]}"
        yield "\n".join([f"**{head}**", "", "```text", *log.lines, "```"])


def _title(name: str) -> str:
    title = find_strategy(name).title
    return f"**{title}**" if name == "holdfast" else title


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rule(columns: int) -> str:
    return "|---|" + "--:|" * columns
