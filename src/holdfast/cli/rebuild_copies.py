"""Commands that rebuild derived data: the search index and the organisers' figures."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.every_pod import end_incomplete
from holdfast.engines.errors import EngineDown

if TYPE_CHECKING:
    from holdfast.app import App


search = typer.Typer(help="The search index.", no_args_is_help=True)
figures = typer.Typer(help="The organisers' sales figures.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


@search.callback()
def search_group() -> None:
    """The search index."""


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


@figures.callback()
def figures_group() -> None:
    """The organisers' sales figures."""


@figures.command()
def rebuild(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """Rebuild the organisers' figures from the ledger, show by show. The sale continues meanwhile.

    In the home database and in every pod of HOLDFAST_PODS. Exit code 2: a pod was not reached.
    """
    count, away = context.obj(data, _rebuild)
    print(json.dumps({"shows": count}) if as_json else f"wrote the figures of {count} shows")
    end_incomplete(away)


async def _rebuild(app: "App") -> tuple[int, list[str]]:
    """Each database has the figures of its own shows. Returns the pods that cannot be reached, too."""
    from holdfast.cli import output as terminal

    count, away = 0, []
    with terminal.progress() as progress:
        for name, each in app.router.by_name.items():
            try:
                count += await each.reports.rebuild(progress)
            except EngineDown:
                if not name:
                    raise
                away.append(name)
    return count, away
