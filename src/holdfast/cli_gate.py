"""holdfast gate | tickets rotate

`gate` is a scanner that types, a light, and a line for every scan. There is no logic here.
"""

import asyncio
import json
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.app import Box
    from holdfast.gate.station.store import Said, Station

GREEN, RED, YELLOW, PLAIN = "\x1b[30;42m", "\x1b[97;41m", "\x1b[30;43m", "\x1b[0m"
TELL_WITHIN_S = 5

Server = Annotated[str, typer.Option(help="Address of the box office; needed the first time.")]
Code = Annotated[str, typer.Option(help="Code of the pass, from the organiser; needed the first time.")]
Folder = Annotated[Path, typer.Option(help="Where the pack and untold scans are kept.")]
Way = Annotated[bool, typer.Option("--exit", help="Scan people out.")]
AsJson = Annotated[bool, typer.Option("--json", help="A JSON object a scan, for programs.")]

tickets = typer.Typer(help="What is shown at the door.", no_args_is_help=True)


@tickets.command()
def rotate(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")
    ] = None,
) -> None:
    """Make a new key that signs tickets. What older ones have signed stays good."""

    async def act(box: "Box") -> int:
        await box.tickets.rotate_key()
        return len(await box.tickets.keys())

    print(f"key {context.obj(data, act)} signs from now on, as soon as every process knows it (two minutes)")


def gate(
    server: Server = "",
    code: Code = "",
    folder: Folder = Path(".holdfast-gate"),
    is_exit: Way = False,
    as_json: AsJson = False,
) -> None:
    """Check tickets at the door: a code a line on standard input, as a keyboard scanner types them.

    Works on without a network from the last pack, and tells the box office when it is back. Instead of a
    code: `/exit` and `/entry` change the direction, `/undo` takes the last admission back, `/counts` tells
    how many are inside, `/quit` ends.
    """
    asyncio.run(_run(server, code, folder, is_exit, as_json))


async def _run(server: str, code: str, folder: Path, is_exit: bool, as_json: bool) -> None:
    from holdfast.engines.trouble import Trouble
    from holdfast.gate.pack import BadPack
    from holdfast.gate.station.store import Denied, Silence, Station

    station = Station.open(folder, server, code)
    try:
        try:
            await station.refresh()
        except Silence:
            if not station.has_pack:
                raise Trouble("no network and no pack: nothing can be decided here yet") from None
        except Denied as denied:
            raise Trouble(denied.title) from None
        except BadPack as bad:
            raise Trouble(str(bad)) from None
        keeping_up = asyncio.create_task(station.keep_up())
        try:
            await _scan(station, is_exit, as_json)
        finally:
            keeping_up.cancel()
            with suppress(asyncio.CancelledError):
                await keeping_up
        with suppress(Silence, Denied, TimeoutError):
            async with asyncio.timeout(TELL_WITHIN_S):
                while station.untold:
                    await station.tell()
        if station.untold:
            print(f"{station.untold} scans are not told yet: they are in {folder}", file=sys.stderr)
    finally:
        await station.close()


async def _scan(station: "Station", is_exit: bool, as_json: bool) -> None:
    from holdfast.gate.station.store import Denied, Silence
    from holdfast.gate.verdict import Verdict
    from holdfast.gate.verdict import Way as Direction

    way, last = (Direction.EXIT if is_exit else Direction.ENTRY), ""
    while line := await asyncio.to_thread(sys.stdin.readline):
        word = line.strip()
        try:
            match word:
                case "":
                    continue
                case "/quit":
                    return
                case "/exit" | "/entry":
                    way = Direction(word[1:])
                    _note(f"scanning people {'out' if way is Direction.EXIT else 'in'}", as_json)
                case "/counts":
                    for show in await station.counts():
                        _note(f"{show['title']}: {show['inside']} inside of {show['tickets']}", as_json)
                case "/undo":
                    said = await station.undo(last)
                    _show(said, as_json)
                case _:
                    said = await station.scan(word, way)
                    last = said.check_in_id if said.verdict is Verdict.ADMITTED else last
                    _show(said, as_json)
        except Silence:
            _note("no network: that needs one", as_json)
        except Denied as denied:
            _note(denied.title, as_json)


def _show(said: "Said", as_json: bool) -> None:
    """One line a scan: a glance tells. A bell for every no."""
    from holdfast.gate.verdict import WORDS

    words = WORDS[said.verdict] if said.verdict else "Nobody can say: no network, and the pack is over"
    if as_json:
        page = {"verdict": said.verdict, "seat": said.seat, "offline": said.is_offline, "words": words}
        print(json.dumps(page), flush=True)
        return
    parts = [
        f"{datetime.now():%H:%M:%S}",
        words.upper() if not said.is_open else words,
        said.seat,
        said.title,
    ]
    if said.first_at is not None:
        parts.append(f"since {said.first_at.astimezone():%H:%M:%S} at {said.first_gate}")
    if said.is_offline:
        parts.append("(no network)")
    line = "  ".join(part for part in parts if part)
    mark = "✓" if said.is_open else "✗"
    if sys.stdout.isatty():
        colour = GREEN if said.is_open else RED if said.verdict else YELLOW
        bell = "" if said.is_open else "\a"
        print(f"{bell}{colour} {mark} {line} {PLAIN}", flush=True)
    else:
        print(f"{mark} {line}", flush=True)


def _note(text: str, as_json: bool) -> None:
    print(json.dumps({"note": text}) if as_json else f"· {text}", flush=True)
