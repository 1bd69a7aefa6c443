"""holdfast venue import"""

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.layouts.layout import Layout

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Act = Callable[[Path | None, Callable[["App"], Awaitable[dict[str, Any]]]], dict[str, Any]]


def venue_commands(act: Act) -> typer.Typer:
    """`act` opens the box office in a folder and lets a function act on it."""
    commands = typer.Typer(help="Halls and their seats.", no_args_is_help=True)

    @commands.callback()
    def group() -> None:
        """Halls and their seats."""

    @commands.command("import")
    def venue_import(
        file: Annotated[Path, typer.Argument(help="Our JSON, a CSV, or a pretix seating plan.")],
        venue: Annotated[
            int | None, typer.Option(help="Number of the venue that gets a hall with it.")
        ] = None,
        hall: Annotated[str, typer.Option(help="Name of that hall. [default: the layout's]")] = "",
        dry_run: Annotated[
            bool, typer.Option("--dry-run", help="Read, check and draw it; store nothing.")
        ] = False,
        data: Data = None,
        as_json: AsJson = False,
    ) -> None:
        """Bring in a hall's seats from a file."""
        from holdfast.layouts.sketch import category_letters, sketch

        layout = _read_layout(file)
        page = _describe(layout)
        if not dry_run:
            page |= act(data, lambda app: _store_layout(app, layout, venue, hall))
        if as_json:
            print_json({**page, "stored": not dry_run})
        else:
            done = "nothing stored" if dry_run else f"stored as layout {layout.hash}"
            print(f"{layout.name}: {layout.seat_count} seats; {done}")
            for line in sketch(layout) if dry_run else ():
                print(line)
            for letter, category in zip(category_letters(), page["categories"], strict=False):
                print(f"{category['seats']:>6}  {letter}  {category['name']}")
            for warning in page["warnings"]:
                print(f"warning: {warning}")

    return commands


def _describe(layout: "Layout") -> dict[str, Any]:
    from holdfast.layouts import find_overlaps

    seats = Counter(layout.category_of)
    return {
        "layout": layout.hash,
        "name": layout.name,
        "seats": layout.seat_count,
        "categories": [
            {"name": category.name, "seats": seats[place]} for place, category in enumerate(layout.categories)
        ],
        "warnings": find_overlaps(layout),
    }


def _read_layout(file: Path) -> "Layout":
    from holdfast.layouts.import_file import LayoutProblem, parse_layout_file
    from holdfast.layouts.layout import Layout

    try:
        return Layout.build(parse_layout_file(file.name, file.read_bytes()))
    except OSError as error:
        raise OperatorError(f"cannot read {file}: {error.strerror}") from None
    except LayoutProblem as problem:
        raise OperatorError(f"{file} is not a layout: {' '.join(str(problem).split())}") from None


async def _store_layout(app: "App", layout: "Layout", venue_id: int | None, hall: str) -> dict[str, Any]:
    from holdfast.organisers.forms import NewHall
    from holdfast.web.caller import Scope

    office = app.catalogue_editor(Scope(account_id=0, is_admin=True))
    await office.add_layout(layout)
    if venue_id is None:
        return {}
    new = NewHall(venue_id=venue_id, name=hall or layout.name, layout_hash=layout.hash)
    return {"hall": (await office.add_hall(new)).id}
