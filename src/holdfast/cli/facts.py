"""holdfast facts groups | list | tail | dead | retry | replay | forget

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
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
def groups(context: typer.Context, data: Data = None, as_json: AsJson = False) -> None:
    """Say how far everybody who hears facts has got, and what waits or is dead there."""
    rows = context.obj(data, lambda app: app.outbox.groups())
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(
            f"{row['name']}: at {row['checkpoint']}, {row['behind']} behind ({row['lag_s']:.1f} s), "
            f"{row['parked']} waiting, {row['dead']} dead"
        )


@facts.command("list")
def list_facts(
    context: typer.Context,
    since: Since = "0",
    kind: Kind = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many.")] = 100,
    data: Data = None,
) -> None:
    """Print the stored facts, oldest first, one JSON document per line."""

    async def read(app: "App") -> None:
        position, left = await _first(app, since) - 1, limit
        while left > 0 and (page := await app.outbox.facts_after(position, PAGE)):
            position = page[-1].id
            left -= _print_facts(page, kind, left)

    context.obj(data, read)


@facts.command()
def tail(context: typer.Context, kind: Kind = "", data: Data = None) -> None:
    """Print facts as they happen, until Ctrl-C."""

    async def read(app: "App") -> None:
        position = await app.outbox.settle(PAGE)
        while True:
            await app.outbox.settle(PAGE)  # no worker may be running
            page = await app.outbox.facts_after(position, PAGE)
            _print_facts(page, kind, len(page))
            position = page[-1].id if page else position
            if not page:
                await asyncio.sleep(TAIL_PAUSE_S)

    context.obj(data, read)


@facts.command()
def dead(context: typer.Context, group: Group = "", data: Data = None, as_json: AsJson = False) -> None:
    """Show facts that a group gave up on, and why."""
    rows = context.obj(data, lambda app: app.outbox.dead(group))
    pages = [{**row, "dead_at": row["dead_at"].isoformat(), "fact": json.loads(row["fact"])} for row in rows]
    if as_json:
        print_json(pages)
        return
    for page in pages:
        kind, booking = page["fact"]["kind"], page["fact"].get("booking_id") or "no booking"
        print(f"{page['group_name']}: {page['fact_id']} {kind}, {booking}: {page['reason']}")
    print(f"{len(pages)} dead")


@facts.command()
def retry(
    context: typer.Context,
    group: Group = "",
    fact: Annotated[int | None, typer.Option("--id", help="Number of one fact; none: all of them.")] = None,
    data: Data = None,
) -> None:
    """Let dead facts be tried again, those of one group or of all."""
    print(f"{context.obj(data, lambda app: app.outbox.retry_dead(group, fact))} will be tried again")


@facts.command()
def replay(context: typer.Context, group: Group, since: Since, data: Data = None) -> None:
    """Deliver facts to a group again, from a fact or a time on, as far back as they are stored.

    What it has done is forgotten too. A notice is written once a fact all the same; `holdfast notices replay`
    sends it again.
    """

    async def rewind(app: "App") -> int:
        return await app.outbox.replay(group, await _first(app, since))

    print(f"{context.obj(data, rewind)} facts will be delivered again")


@facts.command()
def forget(context: typer.Context, group: Group, data: Data = None) -> None:
    """Remove a group without readers: it prevents facts from being purged."""
    if not context.obj(data, lambda app: app.outbox.forget_group(group)):
        raise OperatorError(f"no such group: {group}")
    print(f"forgot {group}")


async def _first(app: "App", since: str) -> int:
    """Find the fact."""
    if since.isdigit():
        return int(since)
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        raise OperatorError(f"neither the number of a fact nor a time: {since}") from None
    found = await app.outbox.first_since(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if found is None:
        raise OperatorError(f"nothing has happened since {since}")
    return found


def _print_facts(page: Sequence["Fact"], kind: str, limit: int) -> int:
    from holdfast.outbox import to_json

    wanted = [fact for fact in page if fact.kind.startswith(kind)][:limit]
    for fact in wanted:
        print(to_json(fact).decode(), flush=True)
    return len(wanted)
