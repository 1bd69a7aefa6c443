"""holdfast gate

`gate` is a scanner that types, a light, and a line for every scan. It has no logic of its own.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from holdfast.checkin.scan import FoundTicket, ShowCount
    from holdfast.scanner.app import Scanner, ScanResult

GREEN, RED, YELLOW, PLAIN = "\x1b[30;42m", "\x1b[97;41m", "\x1b[30;43m", "\x1b[0m"
TELL_WITHIN_S = 5

Server = Annotated[str, typer.Option(help="Address of the box office; needed the first time.")]
Code = Annotated[str, typer.Option(help="Code of the pass, from the organiser; needed the first time.")]
Folder = Annotated[Path, typer.Option(help="Where the pack and scans that are not uploaded are stored.")]
Way = Annotated[bool, typer.Option("--exit", help="Scan people out.")]
AsJson = Annotated[bool, typer.Option("--json", help="A JSON object a scan, for programs.")]


def gate(
    server: Server = "",
    code: Code = "",
    folder: Folder = Path(".holdfast-gate"),
    is_exit: Way = False,
    as_json: AsJson = False,
) -> None:
    """Check tickets at the door: a code a line on standard input, as a keyboard scanner types them.

    Works on without a network from the last pack, and tells the box office when it is back. Instead of a
    code: `/exit` and `/entry` change the direction, `/undo` takes the last admission back, `/find` looks for
    a booking reference or a name and `/admit 1` lets the first of those in, `/counts` tells how many are
    inside, `/quit` ends.
    """
    asyncio.run(_run(server, code, folder, is_exit, as_json))


async def _run(server: str, code: str, folder: Path, is_exit: bool, as_json: bool) -> None:
    from holdfast.checkin.offline import BadPack
    from holdfast.engines.errors import OperatorError
    from holdfast.scanner.app import Scanner
    from holdfast.scanner.client import Denied, NoAnswer

    station = Scanner.open(folder, server, code)
    try:
        try:
            await station.refresh()
        except NoAnswer:
            if not station.has_pack:
                raise OperatorError("no network and no pack: nothing can be decided here yet") from None
        except Denied as denied:
            raise OperatorError(denied.title) from None
        except BadPack as bad:
            raise OperatorError(str(bad)) from None
        keeping_up = asyncio.create_task(station.stay_in_sync(_aside))
        try:
            await Counter(station, is_exit, as_json).open()
        finally:
            keeping_up.cancel()
            with suppress(asyncio.CancelledError):
                await keeping_up
        with suppress(NoAnswer, Denied, TimeoutError):
            async with asyncio.timeout(TELL_WITHIN_S):
                await station.upload()
        if station.pending:
            _aside(f"{station.pending} scans are not uploaded yet: they are in {folder}")
    finally:
        await station.close()


class Counter:
    """The operator at the keyboard: reads what is typed and prints the verdicts."""

    def __init__(self, station: "Scanner", is_exit: bool, as_json: bool) -> None:
        from holdfast.checkin.scan import Way

        self._station = station
        self._way = Way.EXIT if is_exit else Way.ENTRY
        self._as_json = as_json
        self._found: Sequence[FoundTicket] = ()

    async def open(self) -> None:
        """Run until the input ends."""
        from holdfast.scanner.client import Denied, NoAnswer
        from holdfast.scanner.input import typed

        async for line in typed(sys.stdin.fileno()):
            if line == "/quit":
                return
            try:
                if line:
                    await self._answer(line)
            except NoAnswer:
                self._note("no network: that needs one")
            except Denied as denied:
                self._note(denied.title)
            except OSError as error:  # a scan that is not recorded admits no one
                self._note(f"cannot write it down: {error.strerror}")

    async def _answer(self, line: str) -> None:
        from holdfast.checkin.scan import Way
        from holdfast.scanner.input import normalise_code

        word, _, rest = line.partition(" ")
        match word:
            case "/exit" | "/entry":
                self._way = Way(word[1:])
                self._note(f"scanning people {'out' if self._way is Way.EXIT else 'in'}")
            case "/counts":
                for show in await self._station.counts():
                    self._note(_count(show))
            case "/undo":
                _show(await self._station.undo(), self._as_json)
            case "/find":
                self._found = await self._station.search(rest)
                for number, one in enumerate(self._found, 1):
                    self._note(f"{number}: {one.seat}, {one.initials} {one.reference}, {one.standing}")
                if not self._found:
                    self._note("no ticket found")
            case "/admit":
                if not (rest.isdecimal() and 1 <= int(rest) <= len(self._found)):
                    self._note("say the number of one that /find has found")
                    return
                _show(
                    await self._station.admit(self._found[int(rest) - 1].ticket_id, self._way), self._as_json
                )
            case _ if word.startswith("/"):
                self._note("/exit, /entry, /undo, /find, /admit, /counts, /quit")
            case _:
                _show(await self._station.scan(normalise_code(line), self._way), self._as_json)

    def _note(self, text: str) -> None:
        print(json.dumps({"note": text}) if self._as_json else f"· {text}", flush=True)


def _count(show: "ShowCount") -> str:
    gates = ", ".join(f"{one.gate} {one.admitted}" for one in show.gates)
    return f"{show.title}: {show.inside} inside of {show.tickets}; let in at {gates or 'no gate yet'}"


def _aside(text: str) -> None:
    """Not among the verdicts, of which there is exactly one per scan."""
    print(f"· {text}", file=sys.stderr, flush=True)


def _show(result: "ScanResult", as_json: bool) -> None:
    """One line per scan, and a bell for every refusal."""
    from holdfast.checkin.scan import Verdict

    words = result.words
    if as_json:
        verdict = result.verdict or ("refused" if result.refusal else None)
        page = {"verdict": verdict, "seat": result.seat, "offline": result.is_offline, "words": words}
        if result.first_at is not None:
            page |= {"first_at": result.first_at.isoformat(), "first_gate": result.first_gate}
        print(json.dumps(page), flush=True)
        return
    is_well = result.is_open or result.verdict is Verdict.UNDONE
    parts = [
        f"{datetime.now():%H:%M:%S}",
        words if is_well else words.upper(),
        result.seat,
        result.title,
    ]
    if result.first_at is not None:
        parts.append(f"since {result.first_at.astimezone():%H:%M:%S} at {result.first_gate}")
    if result.is_offline:
        parts.append("(no network)")
    line = "  ".join(part for part in parts if part)
    mark = "✓" if is_well else "✗"
    if sys.stdout.isatty():
        colour = GREEN if is_well else RED if result.is_decided else YELLOW
        bell = "" if is_well else "\a"
        print(f"{bell}{colour} {mark} {line} {PLAIN}", flush=True)
    else:
        print(f"{mark} {line}", flush=True)
