"""holdfast search reindex

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.app import App

search = typer.Typer(help="What people search in.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


@search.callback()
def group() -> None:
    """What people search in."""


@search.command()
def reindex(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """Rebuild the search index. Searching continues meanwhile; what was not finished stays due."""
    count = context.obj(data, _reindex)
    print(json.dumps({"events": count}) if as_json else f"wrote {count} events")


async def _reindex(app: "App") -> int:
    from holdfast.cli import output as terminal

    with terminal.progress() as progress:
        count: int = await app.search_index.reindex(progress)
    return count
