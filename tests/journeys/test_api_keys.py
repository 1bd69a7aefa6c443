"""Machines act for an organisation with API keys (R31, R32)."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from holdfast.app import App
from holdfast.config import Config
from holdfast.errors import TokenInvalid
from holdfast.organisations.api_key import CHECKSUM_LENGTH, is_well_formed
from holdfast.organisations.api_keys import KEYS_MAX, new_key
from holdfast.web.caller import Role
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.opened import engines_of, open_app
from tests.support.organiser import Organiser, an_event, sign_in_organiser
from tests.support.rights_house import an_api_key
from tests.support.shows import API, Fan, problem


@pytest.fixture
async def owner(app: App, api: httpx2.AsyncClient) -> Fan:
    return (await sign_in_organiser(app, api)).who


def keys_of(owner: Fan) -> str:
    return f"/organisations/{owner.account_id}/keys"


def machine(owner: Fan, secret: str) -> Organiser:
    return Organiser(Fan(owner.account_id, secret, owner.api))


async def made(owner: Fan, *rights: str, **more: Any) -> dict[str, Any]:
    answer = await an_api_key(owner, *rights, **more)
    assert answer.status_code == 201, answer.text
    assert answer.headers["cache-control"] == "no-store"
    created: dict[str, Any] = answer.json()
    return created


async def logged(owner: Fan, kind: str = "api_key") -> list[dict[str, Any]]:
    answer = await owner.get("/admin/audit-log", subject=kind)
    entries: list[dict[str, Any]] = answer.json()["entries"]
    return entries


async def test_a_key_creates_an_event_for_its_organisation(owner: Fan) -> None:
    created = await made(owner, "catalogue")
    key = machine(owner, created["secret"])

    event = await key.create("/events", an_event())

    assert event["organiser_id"] == owner.account_id
    assert is_well_formed(created["secret"])
    assert created["key"]["secrets"][0]["prefix"] == created["secret"][:12]
    listed = (await owner.get(keys_of(owner))).json()["keys"]
    assert created["secret"] not in str(listed)
    assert (listed[0]["name"], listed[0]["rights"]) == ("A machine", ["catalogue"])
    assert listed[0]["last_used_at"] is not None


async def test_the_audit_log_tells_the_key_from_the_person(owner: Fan) -> None:
    created = await made(owner, "catalogue")
    key_id = created["key"]["key_id"]
    await machine(owner, created["secret"]).create("/events", an_event())
    await machine(owner, created["secret"]).create("/events", an_event())
    await owner.delete(f"{keys_of(owner)}/{key_id}")

    keys, (event, *_) = await logged(owner), await logged(owner, "event")

    assert [entry["action"] for entry in keys] == ["api_key.revoked", "api_key.first_used", "api_key.created"]
    assert [entry["via"] for entry in keys] == ["api", f"key {key_id}", "api"]
    assert keys[2]["actor"]["account_id"] == owner.account_id
    assert (event["actor"], event["via"]) == (None, f"key {key_id}")
    assert created["secret"] not in str(keys)


async def test_a_revoked_key_ends_at_once_in_every_process(app: App, owner: Fan) -> None:
    """Another process has used it a moment ago."""
    created = await made(owner, "catalogue")
    async with open_app(app.config) as other:
        await other.api_keys.verify(created["secret"], "")

        gone = await owner.delete(f"{keys_of(owner)}/{created['key']['key_id']}")

        assert gone.status_code == 204
        with pytest.raises(TokenInvalid):
            await other.api_keys.verify(created["secret"], "")
    refused = await machine(owner, created["secret"]).send("GET", "/events")
    assert (refused.status_code, problem(refused)["code"]) == (401, "token_invalid")
    again = await owner.delete(f"{keys_of(owner)}/{created['key']['key_id']}")
    assert problem(again)["code"] == "no_such_key"


class TestRotation:
    async def test_the_old_secret_works_for_the_overlap(self, app: App, owner: Fan) -> None:
        created = await made(owner, "catalogue")
        path = f"{keys_of(owner)}/{created['key']['key_id']}/secret"

        rotated = (await owner.post(path, {"overlap_h": 2})).json()

        old, new = machine(owner, created["secret"]), machine(owner, rotated["secret"])
        assert (await old.send("GET", "/events")).status_code == 200
        assert (await new.send("GET", "/events")).status_code == 200
        first, second = rotated["key"]["secrets"]
        assert (first["prefix"], first["ends_at"]) == (rotated["secret"][:12], None)
        ends_at = datetime.fromisoformat(second["ends_at"])
        assert timedelta(hours=1) < ends_at - datetime.now(UTC) <= timedelta(hours=2, seconds=5)
        await app.postgres.execute("UPDATE api_key_secret SET ends_at = now() WHERE ends_at IS NOT NULL")
        assert (await old.send("GET", "/events")).status_code == 401
        assert (await new.send("GET", "/events")).status_code == 200

    async def test_without_an_overlap_it_ends_now(self, owner: Fan) -> None:
        created = await made(owner, "catalogue")
        path = f"{keys_of(owner)}/{created['key']['key_id']}/secret"

        rotated = (await owner.post(path, {"overlap_h": 0})).json()

        assert (await machine(owner, created["secret"]).send("GET", "/events")).status_code == 401
        assert (await machine(owner, rotated["secret"]).send("GET", "/events")).status_code == 200
        assert len(rotated["key"]["secrets"]) == 1

    async def test_two_rotations_leave_two_secrets(self, owner: Fan) -> None:
        created = await made(owner, "catalogue")
        path = f"{keys_of(owner)}/{created['key']['key_id']}/secret"

        secrets = [created["secret"], *[(await owner.post(path, {})).json()["secret"] for _ in range(2)]]

        got = [(await machine(owner, secret).send("GET", "/events")).status_code for secret in secrets]
        assert got == [401, 200, 200]

    async def test_a_member_cannot_get_a_secret_with_more_rights_than_their_own(
        self, app: App, api: httpx2.AsyncClient, owner: Fan
    ) -> None:
        (clerk,) = await cast.fans(app, api, 1)
        await app.organisations.add_member(owner.account_id, clerk.account_id, ["settings", "door"])
        created = await made(owner, "refund")

        path = f"{keys_of(owner)}/{created['key']['key_id']}/secret"
        for refused in (
            await clerk.post(path, {}),
            await clerk.post(keys_of(owner), {"name": "Mine", "rights": ["door", "refund"]}),
        ):
            assert (refused.status_code, problem(refused)["code"]) == (403, "rights_too_high")
        fine = await clerk.post(keys_of(owner), {"name": "Mine", "rights": ["door"]})
        assert fine.status_code == 201


class TestExpiry:
    async def test_an_expired_key(self, app: App, owner: Fan) -> None:
        soon = datetime.now(UTC) + timedelta(hours=1)
        created = await made(owner, "catalogue", expires_at=soon.isoformat())
        key = machine(owner, created["secret"])
        assert (await key.send("GET", "/events")).status_code == 200

        await app.postgres.execute(
            "UPDATE api_key SET expires_at = now() WHERE id = $1", created["key"]["key_id"]
        )

        assert problem(await key.send("GET", "/events"))["code"] == "token_expired"

    async def test_a_time_that_is_over(self, owner: Fan) -> None:
        refused = await an_api_key(owner, "door", expires_at="2020-01-01T00:00:00Z")
        assert (refused.status_code, problem(refused)["field"]) == (422, "$.expires_at")


class TestWrongKeys:
    async def test_texts_that_are_not_keys(self, owner: Fan) -> None:
        created = await made(owner, "catalogue")
        wrong = created["secret"][:-CHECKSUM_LENGTH] + "0" * CHECKSUM_LENGTH
        for text in (new_key(), wrong, "hfk_", "hfk_" + "é" * 44, created["secret"] + "x"):
            headers = {b"Authorization": f"Bearer {text}".encode()}
            refused = await owner.api.get(f"{API}/admin/events", headers=headers)
            assert (refused.status_code, problem(refused)["code"]) == (401, "token_invalid"), text
        basic = {"Authorization": f"Basic. {created['secret']}"}
        assert problem(await owner.api.get(f"{API}/admin/events", headers=basic))["code"] == "not_signed_in"

    async def test_a_key_that_an_admin_made_has_no_role(self, app: App, api: httpx2.AsyncClient) -> None:
        (admin,) = await cast.fans(app, api, 1, Role.ADMIN)
        house = (await admin.post("/admin/organisations", {"name": "The Mill"})).json()
        path = f"/organisations/{house['organisation_id']}/keys"
        secret = (await admin.post(path, {"name": "M", "rights": ["catalogue"]})).json()["secret"]
        key = machine(admin, secret)

        event = await key.create("/events", an_event())

        assert event["organiser_id"] == house["organisation_id"]
        assert problem(await key.send("POST", "/cities", {}))["code"] == "token_invalid"
        listed = (await key.send("GET", "/events")).json()
        assert [one["id"] for one in listed["events"]] == [event["id"]]

    async def test_at_most_so_many_per_organisation(self, owner: Fan) -> None:
        for _ in range(KEYS_MAX):
            await made(owner)
        refused = await an_api_key(owner)
        assert (refused.status_code, problem(refused)["code"]) == (409, "keys_max")

    async def test_a_key_is_limited_like_an_account(self, app: App, owner: Fan) -> None:
        created = await made(owner, "catalogue")

        quota = app.config.key_requests_per_minute_max
        wanted, policies = f'"api-key";q={quota};w=60', set[str]()
        # The header names the tightest limit: at first that of the address, which other tests have used, too.
        while wanted not in policies:
            answer = await machine(owner, created["secret"]).send("GET", "/events")
            assert answer.status_code == 200
            policies.add(answer.headers["ratelimit-policy"])


async def test_the_same_idempotency_key_of_a_person_and_of_a_key(owner: Fan) -> None:
    created = await made(owner, "catalogue")
    key, sent = machine(owner, created["secret"]), {"Idempotency-Key": "one"}

    first = await key.create("/events", an_event(), headers=sent)
    same = await key.create("/events", an_event(), headers=sent)
    other = await Organiser(owner).create("/events", an_event(), headers=sent)

    assert first["id"] == same["id"] != other["id"]


async def test_the_house_finds_and_revokes_a_published_key(app: App, config: Config, owner: Fan) -> None:
    urls = engines_of(config)
    secret = (await made(owner, "door"))["secret"]

    listed = await run_holdfast("api-key", "list", secret[:8], "--json", **urls)
    revoked = await run_holdfast("api-key", "revoke", secret[:12], **urls)
    again = await run_holdfast("api-key", "revoke", secret[:12], **urls)

    (found,) = json.loads(listed.output)
    assert (found["prefix"], found["rights"]) == (secret[:12], ["door"])
    assert (revoked.code, "is revoked" in revoked.output) == (0, True), revoked
    assert (again.code, "holdfast api-key list" in again.words) == (2, True), again
    with pytest.raises(TokenInvalid):
        await app.api_keys.verify(secret, "")
