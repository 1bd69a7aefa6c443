"""holdfast figures rebuild

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.app import App

figures = typer.Typer(help="What organisers know of their sales.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


@figures.callback()
def group() -> None:
    """What organisers know of their sales."""


@figures.command()
def rebuild(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """Rebuild the organisers' figures from the ledger, show by show. The sale continues meanwhile."""
    count = context.obj(data, _rebuild)
    print(json.dumps({"shows": count}) if as_json else f"wrote the figures of {count} shows")


async def _rebuild(app: "App") -> int:
    from holdfast.cli import output as terminal

    with terminal.progress() as progress:
        count: int = await app.reports.rebuild(progress)
    return count
