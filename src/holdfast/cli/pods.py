"""holdfast pod add | list | move | resync

`main.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import EngineDown, OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.pods import PodPlace
    from holdfast.pods.move import MoveReport, PodDatabase

pods = typer.Typer(help="Databases that sell shows beside the home database.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Name = Annotated[str, typer.Argument(help="Name of the pod in HOLDFAST_PODS.")]


@pods.command()
def add(
    context: typer.Context,
    name: Name,
    new_shows: Annotated[bool, typer.Option(help="Whether new shows may go there.")] = True,
    home_url: Annotated[str, typer.Option(help="Where the pod's server reaches the home database.")] = "",
    data: Data = None,
) -> None:
    """Make an empty database a pod: schema, guards, and a copy of people and catalogue that follows home."""

    async def act(app: "App") -> int:
        from holdfast.engines.startup_checks import connect
        from holdfast.pods.setup import NewPod, add_pod

        place = _find_place(app, name)
        home, pod = await connect(app.config.session_url), await connect(place.database_url)
        try:
            return await add_pod(home, pod, NewPod(place, home_url or app.config.session_url, new_shows))
        finally:
            await home.close()
            await pod.close()

    number = context.obj(data, act)
    print(f"{name} is pod {number}" + (" and takes new shows" if new_shows else ""))


@pods.command()
def resync(
    context: typer.Context,
    name: Name,
    home_url: Annotated[str, typer.Option(help="Where the pod's server reaches the home database.")] = "",
    data: Data = None,
) -> None:
    """Let a pod receive people and catalogue again from the beginning, with its box office stopped."""

    async def act(app: "App") -> None:
        from holdfast.engines.startup_checks import connect
        from holdfast.pods.resync import resync_pod
        from holdfast.pods.setup import NewPod

        place = _find_place(app, name)
        home, pod = await connect(app.config.session_url), await connect(place.database_url)
        try:
            await resync_pod(home, pod, NewPod(place, home_url or app.config.session_url))
        finally:
            await home.close()
            await pod.close()

    context.obj(data, act)
    print(f"{name} has received everything, and follows home")


@pods.command("list")
def list_pods(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """List the pods: their shows, how far they are behind home, shows that are fenced."""
    rows = context.obj(data, _load_pods)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        state = "unreachable" if row["fenced"] is None else "ok"
        fenced = f", fenced: {', '.join(map(str, row['fenced']))}" if row["fenced"] else ""
        behind = (
            "not connected to home" if row["bytes_behind"] is None else f"{row['bytes_behind']} bytes behind"
        )
        takes = "takes new shows" if row["takes_new_shows"] else "takes no new shows"
        print(f"{row['name']}: {state}, {row['shows']} shows, {takes}, {behind}{fenced}")


def _find_place(app: "App", name: str) -> "PodPlace":
    from holdfast.pods import parse_pods

    place = next((each for each in parse_pods(app.config.pods) if each.name == name), None)
    if place is None:
        raise OperatorError(f"HOLDFAST_PODS has no pod {name!r}: name its engines there first")
    return place


async def _load_pods(app: "App") -> list[dict[str, Any]]:
    from holdfast.pods.store import PodStore

    home = PodStore(app.postgres)
    behind = await home.bytes_behind()
    rows = []
    for row in await home.pods():
        fenced: list[int] | None = None
        if (each := app.router.by_name.get(row["name"])) is not None:
            try:
                fenced = await PodStore(each.postgres).fenced_shows()
            except EngineDown:
                fenced = None
        rows.append({**row, "bytes_behind": behind.get(row["name"]), "fenced": fenced})
    return rows


@pods.command()
def move(
    context: typer.Context,
    show: Annotated[int, typer.Argument(help="Id of the show.")],
    name: Annotated[str, typer.Argument(help="Name of the pod; home: the home database.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Move a show while it sells. Its buyers get 503 with Retry-After for as long as the command takes."""

    async def act(app: "App") -> "MoveReport":
        from holdfast.pods.move import ShowMover

        mover = ShowMover(app.config.session_url, await databases(app))
        return await mover.move(show, "" if name == "home" else name)

    report = context.obj(data, act)
    if as_json:
        print_json([report])
        return
    steps = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in report.steps_s.items())
    print(f"show {show} is in {name}: {report.rows} rows, closed for {report.gap_s:.2f} s ({steps})")


async def databases(app: "App") -> "dict[str, PodDatabase]":
    from holdfast.pods.move import PodDatabase
    from holdfast.pods.store import PodStore

    numbers = {row["name"]: row["number"] for row in await PodStore(app.postgres).pods()}
    return {
        name: PodDatabase(
            name=name,
            number=numbers.get(name, 0),
            url=each.config.session_url,
            outbox=each.outbox,
            drop_map=each.claims.delete,
        )
        for name, each in app.router.by_name.items()
    }
