"""Payments of shows that are in several databases: answers of all pods are merged."""

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from holdfast.payments.chargebacks import ChargebackList, ChargebackQuery
from holdfast.payments.differences import Comparison
from holdfast.payments.errors import NoSuchWebhook
from holdfast.payments.webhooks import WebhookList, WebhookPage, WebhookQuery
from holdfast.web.every_pod import ask_every_pod, drop_copies, find_in_pods

if TYPE_CHECKING:
    from holdfast.app import App


async def load_chargebacks(app: "App", organiser_id: int | None, wanted: ChargebackQuery) -> ChargebackList:
    if not app.router.has_pods:
        return await app.chargebacks.list_newest(organiser_id, wanted)
    # A page of the merged list may have any of the first rows of each pod.
    start, end = (wanted.page - 1) * wanted.size, wanted.page * wanted.size
    answers = await ask_every_pod(
        app, lambda each: each.chargebacks.newest(organiser_id, wanted.state, 0, end + 1)
    )
    found = drop_copies(
        (one for some in answers.values for one in some),
        lambda one: (one.booking_id, one.attempt, one.reference),
    )
    found.sort(key=lambda one: one.booking_id)
    found.sort(key=lambda one: one.changed_at, reverse=True)
    return ChargebackList(found[start:end], len(found) > end, answers.is_complete, answers.away)


async def load_webhooks(app: "App", wanted: WebhookQuery) -> WebhookList:
    if not app.router.has_pods:
        return await app.webhooks_in.list_newest(wanted)
    start, end = (wanted.page - 1) * wanted.size, wanted.page * wanted.size
    answers = await ask_every_pod(app, lambda each: each.webhooks_in.newest(wanted.state, 0, end + 1))
    found = drop_copies(
        (one for some in answers.values for one in some), lambda one: (one.gateway, one.event_id)
    )
    found.sort(key=lambda one: one.event_id)
    found.sort(key=lambda one: one.received_at, reverse=True)
    return WebhookList(found[start:end], len(found) > end, answers.is_complete, answers.away)


async def replay_webhook(app: "App", gateway: str, event_id: str) -> WebhookPage:
    """In whichever pod it is. Raises NoSuchWebhook."""

    async def replay(each: "App") -> WebhookPage | None:
        try:
            return await each.webhooks_in.replay(gateway, event_id)
        except NoSuchWebhook:
            return None

    replayed = await find_in_pods(app, replay)
    if replayed is None:
        raise NoSuchWebhook()
    return replayed


async def load_comparison(app: "App") -> Comparison:
    """The latest of every pod as one: compared is what all of them have compared."""
    answers = await ask_every_pod(app, lambda each: each.reconciliation.latest())
    parts = answers.values
    if len(parts) == 1 and answers.is_complete:
        return parts[0]
    return replace(
        parts[0],
        since=_first([part.since for part in parts]),
        compared_at=_first([part.compared_at for part in parts]),
        seen=sum(part.seen for part in parts),
        settled=sum(part.settled for part in parts),
        differences=sorted((one for part in parts for one in part.differences), key=lambda one: one.found_at),
        complete=answers.is_complete,
        missing_pods=answers.away,
    )


def _first(moments: list[datetime | None]) -> datetime | None:
    """None if there is none of some part."""
    known = [moment for moment in moments if moment is not None]
    return min(known) if len(known) == len(moments) else None
