"""holdfast webhooks list | replay, holdfast reconcile

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.app import App
    from holdfast.payments.reconciliation import ComparisonResult
    from holdfast.payments.webhooks import WebhookPage

webhooks = typer.Typer(help="Webhooks received from payment gateways.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
PAGE = 200


@webhooks.command("list")
def list_webhooks(
    context: typer.Context,
    only_dead: Annotated[bool, typer.Option("--dead", help="Only those given up after many tries.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="At most so many.")] = 50,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show webhooks, newest first, and what became of them."""
    from holdfast.payments.webhooks import WebhookQuery

    query = WebhookQuery(state="dead" if only_dead else "all", size=limit)
    found = context.obj(data, lambda app: app.webhooks_in.list_newest(query))
    _print_webhooks(found.webhooks, as_json)


@webhooks.command()
def replay(
    context: typer.Context,
    event: Annotated[str, typer.Argument(help="Its name at the gateway.")] = "",
    all_dead: Annotated[bool, typer.Option("--all-dead", help="All that were given up.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Look into webhooks again, now. Exit code 1: some could not be settled."""
    if bool(event) == all_dead:
        raise OperatorError("name one webhook, or say --all-dead")

    async def again(app: "App") -> list["WebhookPage"]:
        names = await (app.webhooks_in.list_dead() if all_dead else app.webhooks_in.find_by_event_id(event))
        if not names and not all_dead:
            raise OperatorError(f"no such webhook: {event}")
        return [await app.webhooks_in.replay(*name) for name in names]

    pages = context.obj(data, again)
    _print_webhooks(pages, as_json)
    if any(page.state != "done" for page in pages):
        raise typer.Exit(1)


def reconcile(
    context: typer.Context,
    since: Annotated[str, typer.Option(help="How far back: 90m, 24h, 7d.")] = "24h",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Compare the gateway's books with ours and settle what differs. Exit code 1: something is left."""
    from holdfast.payments.differences import parse_duration

    length = parse_duration(since)
    if length is None:
        raise OperatorError(f"invalid duration {since!r}: use for example 90m, 24h or 7d")
    outcome = context.obj(data, lambda app: _compare(app, length))
    left = [asdict(one) for one in outcome.differences]
    if as_json:
        print_json({"seen": outcome.seen, "settled": outcome.settled, "differences": left})
    else:
        for one in outcome.differences:
            print(f"{one.kind:<9} {one.key}  here: {one.ours}  there: {one.theirs}")
        print(f"{outcome.seen} payments seen, {outcome.settled} settled, {len(left)} differences left")
    if left:
        raise typer.Exit(1)


async def _compare(app: "App", length: "timedelta") -> "ComparisonResult":
    from holdfast.payments.gateway import GatewayDown

    async with app.reconciliation.lock() as is_ours:
        if not is_ours:
            raise OperatorError("another process is comparing at the moment: try again in a minute")
        try:
            return await app.reconciliation.compare(await app.reconciliation.ago(length))
        except GatewayDown:
            raise OperatorError(f"the gateway {app.reconciliation.gateway.name} does not answer") from None


def _print_webhooks(pages: list["WebhookPage"], as_json: bool) -> None:
    import msgspec

    if as_json:
        print_json(msgspec.to_builtins(pages))
        return
    for page in pages:
        reason = f": {page.reason}" if page.reason else ""
        print(f"{page.state:<5} {page.event_id}  {page.kind}, booking {page.booking_id}{reason}")
    print(f"{len(pages)} webhooks")
