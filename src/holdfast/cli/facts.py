"""holdfast facts groups | list | tail | dead | retry | replay | forget

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.cli.every_pod import PodName, choose_pods, end_incomplete, warn_of_missing
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.app import App
    from holdfast.outbox import Fact

PAGE = 500
TAIL_PAUSE_S = 0.2

facts = typer.Typer(help="Facts in the outbox, and how far each consumer has read.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Group = Annotated[str, typer.Option("--group", help="Name of a group: see `holdfast facts groups`.")]
Since = Annotated[str, typer.Option("--from", help="Number of a fact, or a time: 2026-05-01T19:00Z.")]
Kind = Annotated[str, typer.Option("--kind", help="Only these: booking.confirmed, or booking.")]


@facts.command()
def groups(context: typer.Context, pod: PodName = "", data: Data = None, as_json: AsJson = False) -> None:
    """Say how far everybody who hears facts has got, and what waits or is dead there."""
    from holdfast.outbox import load_groups

    rows, away = context.obj(data, lambda app: load_groups(app, _known(app, pod)))
    warn_of_missing(away)
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(
            f"{_place(row)}{row['name']}: at {row['checkpoint']}, {row['behind']} behind "
            f"({row['lag_s']:.1f} s), {row['parked']} waiting, {row['dead']} dead"
        )


@facts.command("list")
def list_facts(
    context: typer.Context,
    since: Since = "0",
    kind: Kind = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 100,
    pod: PodName = "",
    data: Data = None,
) -> None:
    """Print the stored facts, oldest first, one JSON document per line."""

    async def read(app: "App") -> list[str]:
        from holdfast.web.every_pod import merge_streams

        firsts, away = await _find_firsts(app, since, pod)
        streams = {name: _facts_from(app.router.by_name[name], first) for name, first in firsts.items()}
        left = limit
        async for name, fact in merge_streams(streams, lambda one: one.at):
            left -= _print_fact(name, fact, kind)
            if left == 0:
                break
        return away

    warn_of_missing(context.obj(data, read))


@facts.command()
def tail(context: typer.Context, kind: Kind = "", pod: PodName = "", data: Data = None) -> None:
    """Print facts as they happen, until Ctrl-C."""

    async def read(app: "App") -> None:
        pods = choose_pods(app, pod)
        positions = {name: await each.outbox.settle(PAGE) for name, each in pods.items()}
        while True:
            is_idle = True
            for name, each in pods.items():
                await each.outbox.settle(PAGE)  # no worker may be running
                for fact in await each.outbox.facts_after(positions[name], PAGE):
                    _print_fact(name, fact, kind)
                    positions[name], is_idle = fact.id, False
            if is_idle:
                await asyncio.sleep(TAIL_PAUSE_S)

    context.obj(data, read)


@facts.command()
def dead(
    context: typer.Context,
    group: Group = "",
    pod: PodName = "",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show facts that a group gave up on, and why."""
    from holdfast.outbox import load_dead_facts

    rows, away = context.obj(data, lambda app: load_dead_facts(app, group, _known(app, pod)))
    pages = [{**row, "dead_at": row["dead_at"].isoformat(), "fact": json.loads(row["fact"])} for row in rows]
    warn_of_missing(away)
    if as_json:
        print_json(pages)
        return
    for page in pages:
        kind, booking = page["fact"]["kind"], page["fact"].get("booking_id") or "no booking"
        print(f"{_place(page)}{page['group_name']}: {page['fact_id']} {kind}, {booking}: {page['reason']}")
    print(f"{len(pages)} dead")


@facts.command()
def retry(
    context: typer.Context,
    group: Group = "",
    fact: Annotated[int | None, typer.Option("--id", help="Number of one fact; none: all of them.")] = None,
    pod: PodName = "",
    data: Data = None,
) -> None:
    """Let dead facts be tried again, those of one group or of all. Exit code 2: a pod was not reached."""

    async def again(app: "App") -> tuple[int, list[str]]:
        from holdfast.outbox import retry_dead_fact, retry_dead_facts

        if fact is not None:
            return await retry_dead_fact(app, group, fact, _known(app, pod)), []
        return await retry_dead_facts(app, group, _known(app, pod))

    count, away = context.obj(data, again)
    print(f"{count} will be tried again")
    end_incomplete(away)


@facts.command()
def replay(context: typer.Context, group: Group, since: Since, pod: PodName = "", data: Data = None) -> None:
    """Deliver facts to a group again, from a fact or a time on, as far back as they are stored.

    What it has done is forgotten too. A notice is written once a fact all the same; `holdfast notices replay`
    sends it again. Exit code 2: a pod was not reached.
    """

    async def rewind(app: "App") -> tuple[int, list[str]]:
        firsts, away = await _find_firsts(app, since, pod)
        counts, refusals = [], []
        for name, first in firsts.items():
            try:
                counts.append(await app.router.by_name[name].outbox.replay(group, first))
            except OperatorError as refusal:  # there, the group has not got as far: they come anyway
                refusals.append(refusal)
        if not counts:
            raise refusals[0]
        return sum(counts), away

    count, away = context.obj(data, rewind)
    print(f"{count} facts will be delivered again")
    end_incomplete(away)


@facts.command()
def forget(context: typer.Context, group: Group, pod: PodName = "", data: Data = None) -> None:
    """Remove a group without readers: it prevents facts from being purged.

    Exit code 2: a pod was not reached.
    """
    from holdfast.outbox import forget_group

    is_gone, away = context.obj(data, lambda app: forget_group(app, group, _known(app, pod)))
    if not is_gone and not away:
        raise OperatorError(f"no such group: {group}")
    print(f"forgot {group}")
    end_incomplete(away)


def _known(app: "App", pod: str) -> str:
    """The name of a pod of this house, or none. Raises OperatorError."""
    choose_pods(app, pod)
    return pod


def _place(row: dict[str, object]) -> str:
    return f"{row['pod']}: " if row["pod"] else ""


async def _find_firsts(app: "App", since: str, pod: str) -> tuple[dict[str, int], list[str]]:
    """The first fact by pod, of those that have one; and the pods that cannot be reached."""
    from holdfast.web.every_pod import ask_pods

    find = _parse_since(since)
    if since.isdigit() and int(since) > 0 and len(choose_pods(app, pod)) > 1:
        raise OperatorError("every database counts its own facts: give --pod, or a time instead of a number")
    answers = await ask_pods(app, _known(app, pod), find)
    firsts = {each.pod: first for each, first in answers.found if first is not None}
    if not firsts:
        raise OperatorError(f"nothing has happened since {since}")
    return firsts, answers.away


def _parse_since(since: str) -> "Callable[[App], Awaitable[int | None]]":
    """What finds the first fact of a database."""
    if since.isdigit():

        async def take_number(_app: "App") -> int:
            return int(since)

        return take_number
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise OperatorError(f"neither the number of a fact nor a time: {since}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return lambda app: app.outbox.first_since(moment)


async def _facts_from(app: "App", first: int) -> "AsyncIterator[Fact]":
    position = first - 1
    while page := await app.outbox.facts_after(position, PAGE):
        for fact in page:
            yield fact
        position = page[-1].id


def _print_fact(pod: str, fact: "Fact", kind: str) -> bool:
    """Whether it is one of this kind. A fact of a pod names it."""
    from holdfast.outbox import to_json

    if not fact.kind.startswith(kind):
        return False
    line = to_json(fact).decode()
    if pod:
        line = json.dumps({"pod": pod, **json.loads(line)}, ensure_ascii=False)
    print(line, flush=True)
    return True
