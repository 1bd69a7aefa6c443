"""A team works for an organisation: invited, with rights, in several, until they leave (R31, R32)."""

from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.organisations.organisation import NewInvitation
from holdfast.web.caller import Role, Scope
from tests.support import shows as cast
from tests.support.organiser import Organiser, Stage, an_event, show_of, sign_in_organiser
from tests.support.shows import Fan, problem


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await cast.fans(app, api, 1, Role.ADMIN))[0]


@pytest.fixture
async def organisation(admin: Fan) -> dict[str, Any]:
    made = await admin.post("/admin/organisations", {"name": "The Paper Mill"})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def joins(app: App, organisation: dict[str, Any], who: Fan, *rights: Any) -> None:
    """Accepts an invitation of the house."""
    scope = Scope(0, True, organisation["organisation_id"])
    email = (await who.get("/me")).json()["email"]
    page = await app.invitations.invite(scope, NewInvitation(email=email, rights=list(rights)))
    token = await app.invitations.issue_token(page.invitation_id)
    joined = await who.post("/invitations/accept", {"token": token})
    assert joined.status_code == 200, joined.text
    assert joined.json()["organisation_id"] == organisation["organisation_id"]


async def test_a_team_shares_what_belongs_to_the_organisation(
    app: App, alice: Fan, bob: Fan, organisation: dict[str, Any]
) -> None:
    """What one member creates, another one sees and changes; fans become members without a new role."""
    await joins(app, organisation, alice, "catalogue")
    await joins(app, organisation, bob, "catalogue")

    event = (await Organiser(alice).create("/events", an_event()))["id"]
    changed = await Organiser(bob).send("PATCH", f"/events/{event}", {"title": "Renamed"})

    assert changed.status_code == 200, changed.text
    assert changed.json()["organiser_id"] == organisation["organisation_id"]
    assert (await bob.get("/me/organisations")).json()["organisations"] == [
        {
            "organisation_id": organisation["organisation_id"],
            "name": "The Paper Mill",
            "is_owner": False,
            "rights": ["catalogue"],
        }
    ]
    refused = problem(await alice.get("/admin/webhook-endpoints"))
    assert (refused["code"], refused["needed"]) == ("not_allowed", "settings")


async def test_a_member_of_two_names_the_one_they_speak_for(
    app: App, api: httpx2.AsyncClient, organisation: dict[str, Any]
) -> None:
    both = await sign_in_organiser(app, api)
    await joins(app, organisation, both.who, "catalogue")
    own_id, other_id = both.who.account_id, organisation["organisation_id"]

    unnamed = await both.send("POST", "/events", an_event())
    foreign = await both.send("GET", "/events", headers={"Holdfast-Organisation": "1"})
    made = {
        named: await both.create("/events", an_event(), headers={"Holdfast-Organisation": str(named)})
        for named in (own_id, other_id)
    }

    needed = problem(unnamed)
    assert (unnamed.status_code, needed["code"]) == (400, "organisation_needed")
    assert sorted(needed["organisations"]) == sorted([own_id, other_id])
    assert (foreign.status_code, problem(foreign)["code"]) == (403, "not_a_member")
    assert {named: event["organiser_id"] for named, event in made.items()} == {
        own_id: own_id,
        other_id: other_id,
    }
    listed = await both.send("GET", "/events", headers={"Holdfast-Organisation": str(other_id)})
    assert [event["id"] for event in listed.json()["events"]] == [made[other_id]["id"]]


async def test_a_retry_for_another_organisation_is_another_request(
    app: App, api: httpx2.AsyncClient, organisation: dict[str, Any]
) -> None:
    """The key would otherwise return what was created for the first one."""
    both = await sign_in_organiser(app, api)
    await joins(app, organisation, both.who, "catalogue")
    other_id = organisation["organisation_id"]
    key = {"Idempotency-Key": f"one-event-{other_id}"}

    first = await both.send(
        "POST", "/events", an_event(), headers=key | {"Holdfast-Organisation": str(other_id)}
    )
    second = await both.send(
        "POST", "/events", an_event(), headers=key | {"Holdfast-Organisation": str(both.who.account_id)}
    )

    assert first.status_code == 201
    assert problem(second)["code"] == "key_reused"


async def test_a_team_is_managed_over_the_api(
    app: App, alice: Fan, bob: Fan, organisation: dict[str, Any], admin: Fan
) -> None:
    one = f"/organisations/{organisation['organisation_id']}"
    await joins(app, organisation, alice, "settings", "door")
    await joins(app, organisation, bob, "door")

    owner = await admin.post(f"{one}/owner", {"account_id": alice.account_id})
    changed = await alice.api.patch(
        f"/api/v1{one}/members/{bob.account_id}", headers=alice.headers, json={"rights": ["money", "refund"]}
    )
    left = await admin.post(f"{one}/leave")
    members = (await bob.get(f"{one}/members")).json()["members"]

    assert owner.json()["is_owner"] is True
    assert changed.json()["rights"] == ["refund", "money"]
    assert left.status_code == 204
    assert [(one["account_id"], one["is_owner"]) for one in members] == [
        (alice.account_id, True),
        (bob.account_id, False),
    ]
    assert problem(await alice.post(f"{one}/leave"))["code"] == "last_owner"
    removed = await alice.delete(f"{one}/members/{bob.account_id}")
    assert removed.status_code == 204
    assert problem(await bob.get(f"{one}/members"))["code"] == "not_a_member"


async def test_an_organisation_has_several_owners_and_never_none(
    app: App, alice: Fan, bob: Fan, organisation: dict[str, Any], admin: Fan
) -> None:
    one = f"/organisations/{organisation['organisation_id']}"
    await joins(app, organisation, alice, "settings")
    await joins(app, organisation, bob, "settings")

    async def set_rights(who: Fan, whose: Fan, *rights: str) -> httpx2.Response:
        path = f"/api/v1{one}/members/{whose.account_id}"
        return await who.api.patch(path, headers=who.headers, json={"rights": list(rights)})

    raised = problem(await set_rights(alice, alice, "owner"))
    given = await set_rights(admin, alice, "owner", "door")
    left = [await admin.post(f"{one}/leave"), await set_rights(alice, alice, "door")]
    erased = await alice.post("/me/erasure", {})
    shared = await set_rights(alice, bob, "owner")
    await app.erasure.erase(alice.account_id)
    members = (await bob.get(f"{one}/members")).json()["members"]

    assert raised["code"] == "rights_too_high"
    assert given.json()["is_owner"] is True
    assert [left[0].status_code, problem(left[1])["code"]] == [204, "last_owner"]
    assert (erased.status_code, problem(erased)["code"]) == (409, "last_owner")
    assert problem(erased)["organisations"] == [organisation["organisation_id"]]
    assert shared.json()["is_owner"] is True
    assert [member["account_id"] for member in members] == [bob.account_id]


async def test_an_invitation_shows_its_token_to_no_member(
    alice: Fan, organisation: dict[str, Any], admin: Fan
) -> None:
    """A manager could otherwise accept it in the name of the invited person."""
    one = f"/organisations/{organisation['organisation_id']}"

    made = await admin.post(f"{one}/invitations", {"email": "Eve@Example.org", "rights": ["door"]})
    listed = (await admin.get(f"{one}/invitations")).json()["invitations"]

    assert made.status_code == 201
    assert set(made.json()) == {"invitation_id", "email", "rights", "created_at", "expires_at"}
    assert listed == [made.json()]
    assert made.json()["email"] == "eve@example.org"
    withdrawn = await admin.delete(f"{one}/invitations/{made.json()['invitation_id']}")
    assert withdrawn.status_code == 204
    assert (await admin.get(f"{one}/invitations")).json()["invitations"] == []
    refused = await alice.post("/invitations/accept", {"token": "made-up"})
    assert (refused.status_code, problem(refused)["code"]) == (404, "no_such_invitation")


async def test_an_admin_finds_organisations_by_name(admin: Fan, organisation: dict[str, Any]) -> None:
    renamed = await admin.api.patch(
        f"/api/v1/organisations/{organisation['organisation_id']}",
        headers=admin.headers,
        json={"name": f"Grand Quarry {organisation['organisation_id']}"},
    )

    found = (await admin.get("/admin/organisations", q=f"quarry {organisation['organisation_id']}")).json()

    assert renamed.status_code == 200
    assert found == {"total": 1, "organisations": [renamed.json()]}


async def test_prices_and_cancelling_need_their_own_rights(
    app: App, api: httpx2.AsyncClient, organiser: Organiser, alice: Fan, stage: Stage
) -> None:
    """A member who edits the catalogue cannot change a price or send everybody's money back."""
    show = await organiser.create("/shows", show_of(stage))
    await app.organisations.add_member(organiser.who.account_id, alice.account_id, ["catalogue"])
    editor = Organiser(alice)

    needed = {
        name: problem(await editor.send("PATCH", f"/shows/{show['id']}", change))["needed"]
        for name, change in (
            ("price", {"prices": {"Gold": 1}}),
            ("fee", {"fee_bp": 100}),
            ("policy", {"refund_policy": None}),
            ("cancel", {"cancelled": True}),
        )
    }

    assert needed == {"price": "prices", "fee": "prices", "policy": "prices", "cancel": "refund"}
    assert problem(await editor.send("POST", "/shows", show_of(stage)))["needed"] == "prices"
    moved = await editor.send("PATCH", f"/shows/{show['id']}", {"hold_ttl_s": 120})
    assert moved.status_code == 200, moved.text
