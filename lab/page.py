"""The generated parts of docs/lab.md: between two markers each. The prose around them is written by hand."""

import re
from pathlib import Path

from lab.results_file import Results
from lab.tables import crowd_tables, faults_table, logs_text, provenance

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "lab.md"
PART = re.compile(r"(<!-- lab: (\w+) -->\n).*?(\n<!-- end of lab -->)", re.DOTALL)


def render_page(text: str, results: Results) -> str:
    """The page with the results in it."""
    parts = {
        "provenance": provenance(results),
        "twice": faults_table(results, lambda row: row.double_sales),
        "lost": faults_table(results, lambda row: row.lost_holds),
        "paid": faults_table(results, lambda row: row.paid_for_nothing),
        "crowds": crowd_tables(results),
        "logs": logs_text(results),
    }
    return PART.sub(lambda found: f"{found[1]}\n{parts[found[2]]}\n{found[3]}", text)


def write_page(results: Results) -> None:
    PAGE.write_text(render_page(PAGE.read_text(), results))
