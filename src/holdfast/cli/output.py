"""What people see on a terminal: the welcome of what was started, progress, the doctor's findings."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table

if TYPE_CHECKING:  # they import engines' clients, and the process that welcomes is to stay small
    from holdfast.runtime.check_settings import Finding
    from holdfast.runtime.launch import Launched

MARKS = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}
SHOWS_MAX = 6


def welcome(opened: "Launched") -> None:
    """The address, who can sign in, and what is on."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row("[bold]address[/]", f"{opened.url}" if opened.url else "none: only the jobs run here")
    if opened.url:
        grid.add_row("", f"{opened.url}/docs")
    for account in opened.facts.get("accounts", ()):
        grid.add_row(
            "[bold]sign in[/]", escape(f"{account['email']} / {account['password']} ({account['role']})")
        )
    for show in opened.facts.get("shows", [])[:SHOWS_MAX]:
        grid.add_row("[bold]on sale[/]", escape(f"show {show['id']}: {show['title']}, {show['seats']} seats"))
    if "sandbox" in opened.facts:
        grid.add_row("[bold]payments[/]", f"{opened.facts['sandbox']} (test gateway; no money moves)")
    if "health" in opened.facts:
        grid.add_row("[bold]health[/]", opened.facts["health"])
    if "mail" in opened.facts:
        grid.add_row("[bold]mail[/]", f"{opened.facts['mail']} (stored here; none is sent)")
    grid.add_row("[bold]data[/]", escape(opened.data))
    grid.add_row("[bold]stop[/]", "Ctrl-C")
    Console().print(Panel(grid, title="Holdfast", expand=False))
    if "begin" in opened.facts:  # outside of the panel, which would shorten it on a narrow terminal
        print(f"begin: {opened.facts['begin']} (works once, for a day)", flush=True)


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """On stderr, and only on a terminal: (what, done, of how many)."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _what, _done, _total: None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what)
            bars.update(tasks[what], completed=done, total=total)

        yield show


def show_findings(found: Sequence["Finding"], verdict: str) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2))
    for finding in found:
        table.add_row(MARKS[finding.health], finding.what, escape(finding.detail))
        if finding.fix and finding.health != "ok":
            table.add_row("", "", f"[bold]→ {escape(finding.fix)}[/]")
    console = Console()
    console.print(table)
    console.print(f"\n{escape(verdict)}", style="bold", highlight=False)


def note(line: str) -> None:
    """For people only: on stderr, and only on a terminal."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(escape(line), style="dim", highlight=False)
