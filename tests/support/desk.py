"""An organisation at its desk: members with browsers, a show, and paid bookings."""

import re
from dataclasses import dataclass
from typing import Any

import httpx2

from holdfast.app import App
from holdfast.bookings import Booking, reference
from holdfast.engines.postgres import require_row
from holdfast.web.caller import Role
from tests.support.browser_session import Visitor
from tests.support.organiser import Organiser, Stage, a_stage, show_of, sign_in_organiser
from tests.support.paid_bookings import bought
from tests.support.shows import fans

TILE = re.compile(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>")
LEDGER = """
SELECT (SELECT count(*) FROM taken_seat JOIN booking USING (show_id, number)
         WHERE show_id = $1 AND state = 'confirmed') AS "Seats sold",
       (SELECT count(*) FROM ticket WHERE show_id = $1 AND voided_at IS NOT NULL) AS "Seats returned",
       (SELECT coalesce(sum(amount_minor), 0)::bigint / 100 FROM booking
         WHERE show_id = $1 AND state = 'confirmed') AS "Revenue",
       (SELECT sum(amount_minor)::bigint / 100 FROM refund WHERE show_id = $1) AS "Refunded"
"""


async def owned(app: App, api: httpx2.AsyncClient, show_id: int) -> str:
    """The path of the show at the desk of a new organisation, to which its event belongs from now on."""
    (owner,) = await fans(app, api, 1, Role.ORGANISER)
    await app.postgres.execute(
        "UPDATE event SET organiser_id = $1 WHERE id = (SELECT event_id FROM show WHERE id = $2)",
        owner.account_id,
        show_id,
    )
    return f"/desk/{owner.account_id}/shows/{show_id}"


async def desk_equals_ledger(app: App, url: str, path: str) -> bool:
    """Whether the figures on the page of a show are the sums of its bookings, tickets and refunds."""
    _, _, organisation, _, show = path.split("/")
    cookie = await app.sessions.open_account(int(organisation), None)
    async with httpx2.AsyncClient(base_url=url, timeout=30, cookies={"holdfast": cookie}) as client:
        page = await client.get(path, headers={"accept": "text/html", "accept-language": "en"})
    assert page.status_code == 200, page.text
    shown = {name: int(re.sub(r"[^0-9]", "", text)) for name, text in TILE.findall(page.text)}
    rows = require_row(await app.postgres.fetchrow(LEDGER, int(show)))
    return shown == {name: value for name, value in dict(rows).items() if value is not None}


async def sit_down(app: App, visitor: Visitor, account_id: int, signed_in_by: str = "link") -> Visitor:
    """The visitor's browser is signed in to this account."""
    cookie = await app.sessions.open_account(account_id, None, signed_in_by=signed_in_by)
    visitor.client.cookies.set("holdfast", cookie)
    return visitor


@dataclass(frozen=True)
class DeskHouse:
    """One organisation with one show."""

    owner: Organiser
    stage: Stage
    show_id: int
    title: str

    @property
    def organisation_id(self) -> int:
        return self.owner.who.account_id

    @property
    def path(self) -> str:
        return f"/desk/{self.organisation_id}"

    async def buys(self, app: App, *seats: int, **more: Any) -> Booking:
        return await bought(app, self.show_id, *seats, **more)

    async def shows_at(self, starts_at: str) -> int:
        """Another show of the event."""
        return int((await self.owner.create("/shows", show_of(self.stage, starts_at=starts_at)))["id"])

    def reference(self, booking: Booking) -> str:
        return reference(booking.show_id, booking.number)


async def a_desk_house(app: App, api: httpx2.AsyncClient, **show: Any) -> DeskHouse:
    owner = await sign_in_organiser(app, api)
    stage = await a_stage(app, api, owner)
    made = await owner.create("/shows", show_of(stage, **show))
    return DeskHouse(owner, stage, made["id"], made["title"])
