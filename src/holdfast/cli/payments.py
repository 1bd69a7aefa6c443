"""holdfast webhooks list | replay, reconcile, refunds list, show cancel | prices; and an audit as text.

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import print_json
from holdfast.cli.every_pod import warn_of_missing
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.app import App
    from holdfast.organisers.show_forms import PricePlan
    from holdfast.payments.reconciliation import ComparisonResult
    from holdfast.payments.webhooks import WebhookPage
    from holdfast.refunds.refund import Cancellation, Refund

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
    from holdfast.payments import WebhookQuery, load_webhooks

    query = WebhookQuery(state="dead" if only_dead else "all", size=limit)
    found = context.obj(data, lambda app: load_webhooks(app, query))
    warn_of_missing(found.missing_pods)
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
        pages = []
        for each in app.router.by_name.values():
            hooks = each.webhooks_in
            names = await (hooks.list_dead() if all_dead else hooks.find_by_event_id(event))
            pages += [await hooks.replay(*name) for name in names]
        if not pages and not all_dead:
            raise OperatorError(f"no such webhook: {event}")
        return pages

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
    parts = context.obj(data, lambda app: _compare_all(app, length))
    seen, settled = sum(part.seen for part in parts), sum(part.settled for part in parts)
    differences = [one for part in parts for one in part.differences]
    left = [asdict(one) for one in differences]
    if as_json:
        print_json({"seen": seen, "settled": settled, "differences": left})
    else:
        for one in differences:
            print(f"{one.kind:<9} {one.key}  here: {one.ours}  there: {one.theirs}")
        print(f"{seen} payments seen, {settled} settled, {len(left)} differences left")
    if left:
        raise typer.Exit(1)


async def _compare_all(app: "App", length: "timedelta") -> "list[ComparisonResult]":
    """Each database compares the payments of its own shows."""
    return [await _compare(each, length) for each in app.router.by_name.values()]


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


LOOK_AGAIN_S = 0.2
ARRIVES_WITHIN_S = 20.0
LIST_MAX = 100

refunds = typer.Typer(help="Money that goes back.", no_args_is_help=True)
show = typer.Typer(help="Shows.", no_args_is_help=True)


@refunds.command("list")
def list_refunds(
    context: typer.Context,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Only those that a person must pay: the gateway would not.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """The newest refunds, and how far they are."""
    found = context.obj(data, lambda app: _refunds(app, "by_hand" if by_hand else None))
    pages = [_refund_page(refund) for refund in found]
    if as_json:
        print_json(pages)
        return
    for page in pages:
        words = [page["reason"], page["note"]]
        print(
            f"{page['refund_id']}  {page['state']:<8} {page['amount_minor']:>9} {page['currency']}"
            f"  {page['requested_at']}  {'; '.join(word for word in words if word)}".rstrip()
        )
    print(f"{len(pages)} refunds")


@show.command("cancel")
def cancel_show(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="Number of the show.")],
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Cancel a show and give everybody all their money back. Killed and run again, it goes on."""
    if not is_sure:
        typer.confirm(
            f"Cancel show {number} and refund everybody? This cannot be undone.", abort=True, err=True
        )
    done: Cancellation = context.obj(data, lambda app: _cancel_show(app, number))
    if as_json:
        from msgspec import to_builtins

        print_json(to_builtins(done))
    else:
        print(f"Show {number} is cancelled: {done.bookings} bookings, {done.refunded} refunded.")
        if done.by_hand:
            print(f"{done.by_hand} must be paid by hand: `holdfast refunds list --by-hand`")
    if done.by_hand:
        raise typer.Exit(1)


@show.command("prices")
def show_prices(
    context: typer.Context,
    number: Annotated[int, typer.Argument(help="Number of the show.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """What the seats of a show cost now, the rules that move its prices, and their last changes."""
    plan: PricePlan = context.obj(data, lambda app: _price_plan(app, number))
    if as_json:
        from msgspec import to_builtins

        print_json(to_builtins(plan))
        return
    from holdfast.money import format_plain

    for price in plan.prices:
        soon = (
            f" until {price.until}, then {format_plain(price.then_minor or 0, plan.currency)}"
            if price.until
            else ""
        )
        by = "by rules" if price.follows_rules else "fixed"
        print(f"{price.category:<24} {format_plain(price.price_minor, plan.currency):>16}  {by}{soon}")
    for change in plan.changes[:10]:
        was = "new" if change.was_minor is None else format_plain(change.was_minor, plan.currency)
        share = f"  {change.sold} of {change.seats} sold" if change.seats else ""
        cost = format_plain(change.price_minor, plan.currency)
        print(f"{change.at:%Y-%m-%d %H:%M:%S}  {change.category}: {was} to {cost}  {change.why}{share}")


async def _price_plan(app: "App", show_id: int) -> "PricePlan":
    from holdfast.web.caller import Scope

    return await app.price_rules(Scope(0, is_admin=True)).plan(show_id)


async def _refunds(app: "App", state: str | None) -> "list[Refund]":
    from holdfast.refunds import LATEST_REFUND, RefundQuery, RefundState, load_refunds

    wanted = RefundQuery(state=RefundState(state) if state else None, size=LIST_MAX)
    found, away = await load_refunds(app, None, wanted, LATEST_REFUND)
    warn_of_missing(away)
    return found[:LIST_MAX]


def _refund_page(refund: "Refund") -> dict[str, Any]:
    names = ("refund_id", "show_id", "state", "amount_minor", "currency", "note", "reason")
    return {
        **{name: getattr(refund, name) for name in names},
        "requested_at": refund.requested_at.isoformat(),
    }


async def _cancel_show(app: "App", show_id: int) -> "Cancellation":
    """Cancel it in the catalogue, then run the jobs here, beside other workers."""
    from holdfast.cli import output as terminal
    from holdfast.organisers.show_forms import ShowChange
    from holdfast.payments.jobs import PaymentJobs
    from holdfast.refunds.jobs import RefundJobs
    from holdfast.web import log
    from holdfast.web.caller import Scope

    log.set_up()  # on stderr: what we answer is for programs, too
    editor = app.show_editor(Scope(account_id=0, is_admin=True))
    await editor.change_show(show_id, ShowChange(cancelled=True))
    app = await find_cancelled(app, show_id)
    refunds = RefundJobs(app.refund_store, app.refunds, app.config.refunds_at_once_max)
    payments = PaymentJobs(app.payments, app.saga_runner)
    with terminal.progress() as progress:
        while True:
            done = await app.refunds.cancel_batch(show_id)
            done += await refunds.carry_out() + await payments.carry_on()
            how_far = await app.refund_store.cancellation(show_id)
            progress("refunds", how_far.refunded + how_far.by_hand, max(1, how_far.bookings))
            if how_far.is_over:
                await refunds.wait_until_idle()
                return how_far
            if not done:
                await asyncio.sleep(LOOK_AGAIN_S)


async def find_cancelled(app: "App", show_id: int) -> "App":
    """The application of the pod that sold the show, after it has received the change from home."""
    from holdfast.pods.waiting import wait_until

    pod, changed = app.router.for_show(show_id), await app.bookings.sale(show_id)
    if pod is app or changed is None:
        return app

    async def has_arrived() -> bool:
        sale = await pod.bookings.sale(show_id)
        return sale is not None and sale.revision >= changed.revision

    try:
        await wait_until(has_arrived, ARRIVES_WITHIN_S)
    except TimeoutError:
        raise OperatorError(
            f"show {show_id} is cancelled, but its pod has not received that yet: its workers refund when it "
            "has; see `holdfast pod list`"
        ) from None
    return pod
