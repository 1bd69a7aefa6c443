"""Webhooks of a house with pods: each database delivers its own facts, and their organiser gets one list.

home ──replication──► endpoints in every pod; a pod that gives up on one switches it off for itself
"""

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from holdfast.web.every_pod import HOME_NAME, ask_every_pod, ask_pods, find_pod
from holdfast.web.pod_pages import LAST, merge_page, parse_key, parse_positions
from holdfast.webhooks_out.delivery import DeliveriesQuery, DeliveryList, DeliveryPage, Replayed, ReplaySince
from holdfast.webhooks_out.endpoint import EndpointList, EndpointPage, EndpointsQuery, ListedEndpoint
from holdfast.webhooks_out.errors import EndpointOff, NoSuchDelivery, NoSuchEndpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.app import App

Which = tuple[int, int | None]  # endpoint, and the organiser whose it must be; None: anyone's


async def load_endpoints(app: "App", organiser_id: int | None, wanted: EndpointsQuery) -> EndpointList:
    found = await app.webhooks_out.endpoints(organiser_id, wanted.before, wanted.size + 1)
    pages, away = await _add_switches(app, found[: wanted.size])
    following = pages[-1].endpoint_id if len(found) > wanted.size else None
    return EndpointList(pages, following, not away, away)


async def load_endpoint(app: "App", which: Which) -> ListedEndpoint:
    (page,), _ = await _add_switches(app, [await app.webhooks_out.endpoint(*which)])
    return page


async def _add_switches(
    app: "App", pages: "Sequence[EndpointPage]"
) -> tuple[list[ListedEndpoint], list[str]]:
    """What is off at home is off everywhere."""
    switched_on = [page.endpoint_id for page in pages if page.active]
    answers = await ask_every_pod(app, lambda each: each.webhooks_out.switched_off(switched_on))
    pods = [(each.pod, off) for each, off in answers.found if each is not app]
    listed = [
        ListedEndpoint(
            **asdict(page),
            off_in={pod: off[page.endpoint_id] for pod, off in pods if page.endpoint_id in off},
            missing_pods=answers.away,
        )
        for page in pages
    ]
    return listed, answers.away


async def load_deliveries(app: "App", which: Which, wanted: DeliveriesQuery) -> DeliveryList:
    """Newest fact first. Raises NoSuchDelivery for a pod that does not exist: it has delivered nothing."""
    await app.webhooks_out.endpoint(*which)
    positions = parse_positions(wanted.before)

    async def load(each: "App") -> list[DeliveryPage]:
        before = positions.get(each.pod, LAST)
        return await each.webhooks_out.deliveries(which[0], wanted.state, before, wanted.size + 1)

    try:
        answers = await ask_pods(app, wanted.pod, load)
    except LookupError:
        raise NoSuchDelivery from None
    pages, following = merge_page(
        {each.pod: pages for each, pages in answers.found},
        wanted.size,
        wanted.before,
        time_of=lambda page: page.fact_at,
        number_of=lambda page: page.fact_id,
    )
    return DeliveryList(pages, following, answers.is_complete, answers.away)


async def replay_delivery(app: "App", which: Which, webhook_id: str, pod: str = "") -> DeliveryPage:
    """`pod`: where the fact is, if the id does not have its name."""
    key = parse_key(webhook_id)
    if key is None:
        raise NoSuchDelivery
    name, fact_id = key
    owner = find_pod(app, name or pod)
    if owner is None:
        raise NoSuchDelivery
    return await owner.webhooks_out.replay(*which, fact_id)


async def replay_deliveries(app: "App", which: Which, body: ReplaySince) -> Replayed:
    """In every database that can be reached. Raises EndpointOff if it is off everywhere."""

    async def replay(each: "App") -> int | None:
        try:
            return await each.webhooks_out.replay_since(*which, body.since, failed_only=body.failed_only)
        except EndpointOff:
            if each is app:
                raise
            return None
        except NoSuchEndpoint:  # it is new, and has not arrived yet
            if each is app:
                raise
            return 0

    answers = await ask_every_pod(app, replay)
    off_in = [each.pod or HOME_NAME for each, count in answers.found if count is None]
    count = sum(count or 0 for count in answers.values)
    return Replayed(count, answers.is_complete, answers.away, off_in)
