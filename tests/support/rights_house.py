"""An organisation with one of everything, and a valid request for every route that needs a right."""

from dataclasses import dataclass, field
from typing import Any

import httpx2

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.organisations.organisation import GRANTABLE
from holdfast.web.caller import Right
from holdfast.web.routing import API, Route, params_of
from tests.support import shows as cast
from tests.support.gates import a_pass
from tests.support.organiser import Organiser, a_body, a_stage, an_event, show_of, sign_in_organiser
from tests.support.shows import Fan

UNKNOWN = 2**53  # no id of anything
RULE = {"category": "Gold", "base_minor": 50_000, "floor_minor": 40_000, "ceiling_minor": 90_000}
RULES = {"currency": "INR", "rules": [RULE]}
# The body of every route that has one. A route without a line fails the test that is generated from it.
BODIES: dict[str, Any] = {
    "create_refund": {"reason": "Sorry", "full": True},
    "settle_refund": {"note": "paid in cash"},
    "reject_refund": {"note": "not ill"},
    "set_refund_limits": {"limits": []},
    "set_invoice_seller": {"name": "A Ltd"},
    "create_block": {"name": "House", "seats": ["B-1"]},
    "update_block": {"name": "Press"},
    "release_block_seats": {"seats": ["A-1"]},
    "set_door_settings": {},
    "update_venue": {"name": "Renamed"},
    "create_event": an_event(),
    "update_event": {"title": "Another title"},
    "update_hall": {"name": "Small"},
    "create_layout": a_body(name="Another hall"),
    "import_layout": a_body(name="Imported"),
    "update_show": {"hold_ttl_s": 300},
    "preview_price_rules": RULES,
    "set_price_rules": RULES,
    "compare_show_layout": {"withdraw": ["Z-1"]},
    "change_show_layout": {"withdraw": ["Z-1"]},
    "update_organisation": {"name": "Renamed"},
    "require_second_factor": {"required": False},
    "update_member": {"rights": ["door"]},
    "publish_organisation_text": {"texts": {"en": "Be kind."}},
    "create_invitation": {"email": "new@example.com", "rights": ["door"]},
    "create_api_key": {"name": "Another", "rights": ["door"]},
    "rotate_api_key": {"overlap_h": 1},
    "create_webhook_endpoint": {"url": "https://example.com/more"},
    "update_webhook_endpoint": {"kinds": []},
    "replay_webhook_deliveries": {"since": "2026-01-01T00:00:00Z"},
    "set_show_queue": {"inside_max": 10},
    "override_show_queue": {"reason": "the scanners are down"},
    "set_show_queue_beacon": {"value": "f00d"},
    "set_notice_sender": {"from_name": "A Ltd"},
}


@dataclass
class RightsHouse:
    owner: Organiser
    organisation_id: int
    params: dict[str, Any]  # of paths: ids of what the organisation owns
    bodies: dict[str, Any]
    queries: dict[str, dict[str, Any]]  # of routes that need one
    members: dict[Right, Fan] = field(default_factory=dict)  # each with one right; MEMBER: with none
    keys: dict[Right, Fan] = field(default_factory=dict)  # API keys, the same; OWNER: with all that keys have

    def path(self, route: Route, *, is_known: bool = True) -> str:
        path = route.path
        for name, value in self.params.items():
            given = value if is_known or name == "organisation" else _unknown(value)
            path = path.replace("{" + name + ":int}", str(given)).replace("{" + name + "}", str(given))
        assert "{" not in path, f"{route.name}: no sample of a parameter of {path}"
        return API + path

    def is_about_something(self, route: Route) -> bool:
        """Of the organisation: its path or its query names it. A preview has made-up data."""
        return bool(params_of(route.path) or route.name in self.queries) and route.name != "preview_notice"

    async def send(
        self, route: Route, who: Fan | None, organisation_id: int | None = None, *, is_known: bool = True
    ) -> httpx2.Response:
        """A valid request for what the organisation owns; with `is_known=False`, for what does not exist."""
        headers = dict(who.headers) if who is not None else {}
        if organisation_id is not None:
            headers["Holdfast-Organisation"] = str(organisation_id)
        if route.name == "create_refund":
            headers["Idempotency-Key"] = "one-refund"
        more: dict[str, Any] = {"params": self.queries.get(route.name, {}) if is_known else {}}
        if route.name == "upload_poster":
            headers["Content-Type"] = "image/png"
            more["content"] = b"not a picture"
        elif route.body is not None or route.name == "import_layout":
            assert route.name in self.bodies, f"{route.name}: no sample of its body"
            more["json"] = self.bodies[route.name] if is_known else {"unknown": "field"}
        path = self.path(route, is_known=is_known)
        return await self.owner.who.api.request(route.method, path, headers=headers, **more)


def _unknown(value: Any) -> Any:
    return UNKNOWN if isinstance(value, int) else "aaaaaaaaaaaaaaaaaaaa"


async def _a_proposal(app: App, booking: str, organisation_id: int, by: int) -> int:
    """A refund that waits for approval, though its booking is not paid."""
    sql = (
        "INSERT INTO refund_proposal (show_id, number, organiser_id, why, what, seats, amount_minor,"
        " currency, note, proposed_by, expires_at)"
        " VALUES ($1, $2, $3, 'admin:1:x', 'whole', '{}', 1, 'INR', 'ill', $4, now() + interval '1 hour')"
        " RETURNING id"
    )
    return int(await app.postgres.fetchval(sql, *from_public_id(booking), organisation_id, by))


async def an_api_key(owner: Fan, *rights: str, **more: Any) -> httpx2.Response:
    """Of the owner's own organisation."""
    new = {"name": "A machine", "rights": list(rights), **more}
    return await owner.post(f"/organisations/{owner.account_id}/keys", new)


async def key_fan(owner: Fan, *rights: str) -> Fan:
    """A client that sends a new key of the owner's own organisation."""
    made = await an_api_key(owner, *rights)
    assert made.status_code == 201, made.text
    return Fan(owner.account_id, made.json()["secret"], owner.api)


async def a_rights_house(app: App, api: httpx2.AsyncClient) -> RightsHouse:
    owner = await sign_in_organiser(app, api)
    organisation_id = owner.who.account_id
    stage = await a_stage(app, api, owner)
    show = await owner.create("/shows", show_of(stage))
    block = await owner.create(f"/shows/{show['id']}/blocks", {"name": "House", "seats": ["A-1", "A-2"]})
    gate_pass = await owner.create("/gate-passes", a_pass(show["id"]))
    endpoint = await owner.create("/webhook-endpoints", {"url": "https://example.com/hook"})
    (buyer, other) = await cast.fans(app, api, 2)
    booking = (await buyer.holds(show["id"], "B-5")).json()
    invited = await owner.who.post(
        f"/organisations/{organisation_id}/invitations", {"email": "invited@example.com", "rights": []}
    )
    key = (await an_api_key(owner.who, "door")).json()
    await app.organisations.add_member(organisation_id, other.account_id, [])
    hall = {"venue_id": stage.venue_id, "name": "Two", "layout_hash": stage.layout_hash}
    venue = {"city_id": stage.city_id, "name": "A", "postal_code": "4", "lat": 1.0, "lon": 1.0}
    house = RightsHouse(
        owner,
        organisation_id,
        {
            "organisation": organisation_id,
            "show": show["id"],
            "event": stage.event_id,
            "venue": stage.venue_id,
            "hall": stage.hall_id,
            "layout": stage.layout_hash,
            "block": block["block_id"],
            "pass": gate_pass["gate_pass"]["pass_id"],
            "endpoint": endpoint["endpoint"]["endpoint_id"],
            "booking": booking["booking_id"],
            "refund": f"{booking['booking_id']}-1-1",
            "proposal": await _a_proposal(app, booking["booking_id"], organisation_id, other.account_id),
            "account": other.account_id,
            "invitation": invited.json()["invitation_id"],
            "key": key["key"]["key_id"],
            "fact": 1,
            "kind": "tickets",
            "text": "refunds",
            "city": stage.city_id,
        },
        BODIES
        | {
            "create_hall": hall,
            "create_venue": venue,
            "create_show": show_of(stage, starts_at="2099-01-01T00:00:00Z"),
            "create_gate_pass": a_pass(show["id"]),
        },
        {name: {"show": show["id"]} for name in ("find_bookings", "export_bookings")},
    )
    for right in (Right.MEMBER, *GRANTABLE):
        (member,) = await cast.fans(app, api, 1)
        rights = [] if right is Right.MEMBER else [right.value]
        await app.organisations.add_member(organisation_id, member.account_id, rights)
        house.members[right] = member
        house.keys[right] = await key_fan(owner.who, *rights)
    house.keys[Right.OWNER] = await key_fan(owner.who, *GRANTABLE)
    house.bodies["transfer_ownership"] = {"account_id": house.members[Right.MEMBER].account_id}
    return house
