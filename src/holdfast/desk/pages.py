"""Every page of the desk, and their routes."""

from collections.abc import Iterable

from holdfast.desk import (
    accounts,
    audit_log,
    blocks,
    booking_refund,
    bookings,
    cancel_page,
    door,
    home,
    house,
    house_settings,
    keys,
    legal,
    proposals,
    queue,
    refunds,
    replay_page,
    settings,
    show_page,
    team,
    waitlist,
    webhooks,
)
from holdfast.desk.access import DeskPage, build_routes
from holdfast.web.routing import Route

DESK_PAGES: tuple[DeskPage, ...] = (
    *home.start.all,
    *home.desk.all,
    *show_page.desk.all,
    *replay_page.desk.all,
    *cancel_page.desk.all,
    *bookings.desk.all,
    *booking_refund.desk.all,
    *refunds.desk.all,
    *proposals.desk.all,
    *blocks.desk.all,
    *queue.desk.all,
    *waitlist.desk.all,
    *door.desk.all,
    *team.desk.all,
    *legal.desk.all,
    *settings.desk.all,
    *webhooks.desk.all,
    *keys.desk.all,
    *audit_log.desk.all,
    *house.house.all,
    *accounts.house.all,
    *refunds.house.all,
    *proposals.house.all,
    *audit_log.house.all,
    *legal.house.all,
    *house_settings.house.all,
)


def build_desk_routes(api: Iterable[Route]) -> tuple[Route, ...]:
    return build_routes(DESK_PAGES, api)
