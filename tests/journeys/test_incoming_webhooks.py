"""A gateway writes to us: true webhooks count once, forgeries not at all, and operators see them (R23)."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from starlette.types import Message, Receive, Scope, Send

from holdfast.app import App
from holdfast.bookings import from_public_id
from holdfast.config import Config
from holdfast.engines.metrics import metrics
from holdfast.payments.payment import Payment
from holdfast.payments.saga import PaymentStep
from holdfast.sandbox.process import SandboxSetup, open_sandbox
from holdfast.sandbox.webhook import api_key
from holdfast.web.asgi import Application
from holdfast.web.caller import Role
from tests.conftest import GATEWAY_SECRET, served, started
from tests.support import shows as cast
from tests.support.cli_process import run_holdfast
from tests.support.gateway_webhooks import HEADER, SignedWebhook, a_webhook, charged
from tests.support.ledger_payments import NO, confirmed, paying
from tests.support.opened import asgi_app, engines_of
from tests.support.paying_fans import hold_seats, load_state, pay
from tests.support.shows import Fan, problem
from tests.support.wait import until

Show = Callable[..., Awaitable[int]]
PATH = "/webhooks/sandbox"
# Everything a webhook could change.
TABLES = ("booking", "payment", "refund", "journal", "ticket", "taken_seat", "outbox", "booking_move")


async def dump(app: App, show_id: int) -> dict[str, list[Any]]:
    query = "SELECT * FROM {} WHERE show_id = $1 ORDER BY 1, 2, 3".format
    rows = {table: await app.postgres.fetch(query(table), show_id) for table in TABLES}
    sql = "SELECT event_id, show_id, due_at, done_at, tries FROM gateway_webhook ORDER BY 1"
    return {**rows, "webhook": await app.postgres.fetch(sql)}


async def waiting(app: App, fan: Fan, show_id: int) -> Payment:
    """Its payer is on the gateway's page."""
    booking = await hold_seats(fan, show_id)
    assert (await pay(fan, booking, "")).status_code == 202
    payment = await app.payments.latest(*from_public_id(booking))
    assert payment is not None
    assert payment.step is PaymentStep.LOOK_UP
    return payment


async def sent(api: httpx2.AsyncClient, webhook: SignedWebhook, **changes: Any) -> httpx2.Response:
    headers = {"Content-Type": "application/json", **webhook.headers, **changes.pop("headers", {})}
    return await api.post(PATH, content=changes.get("raw", webhook.raw), headers=headers)


def changed(webhook: SignedWebhook, **changes: Any) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(webhook.raw), **changes})


def of_payment(webhook: SignedWebhook, **changes: Any) -> bytes:
    payment = msgspec.json.decode(webhook.raw)["payment"]
    return changed(webhook, payment={**payment, **changes})


FORGERIES: dict[str, Callable[[SignedWebhook], tuple[bytes, dict[str, str]]]] = {
    "no signature": lambda true: (true.raw, {HEADER: ""}),
    "a bad signature": lambda true: (true.raw, {HEADER: true.headers[HEADER][:-1] + "x"}),
    "another secret": lambda true: (true.raw, replace(true, secret="whsec_mine").headers),
    "another mode": lambda true: _signed(changed(true, mode="live")),
    "stale by a second": lambda true: (true.raw, replace(true, age_s=301).headers),
    "from the future": lambda true: (true.raw, replace(true, age_s=-302).headers),
    "another amount": lambda true: (of_payment(true, amount_minor=1), true.headers),
    "another amount, signed": lambda true: _signed(of_payment(true, amount_minor=1)),
    "another currency": lambda true: (of_payment(true, currency="USD"), true.headers),
    "another currency, signed": lambda true: _signed(of_payment(true, currency="USD")),
    "encoded again": lambda true: (json.dumps(json.loads(true.raw), indent=1).encode(), true.headers),
    "another account": lambda true: _signed(changed(true, account="acct_other")),
    "a signature of another": lambda true: (true.raw, SignedWebhook(b"{}").headers),
    "not JSON": lambda true: _signed(b"captured!"),
    "a NUL in its name": lambda true: _signed(changed(true, id="evt_\0")),
    "a name without end": lambda true: _signed(changed(true, id="e" * 256)),
    "a sum beyond all": lambda true: _signed(of_payment(true, amount_minor=2**63)),
    "two times": lambda true: (true.raw, {HEADER: f"t=1,{true.headers[HEADER]}"}),
}


def _signed(raw: bytes) -> tuple[bytes, dict[str, str]]:
    return raw, SignedWebhook(raw).headers


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forgery_changes_nothing(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan, forgery: str
) -> None:
    """A true webhook confirms this booking: its money was taken (cell 14)."""
    show_id = await a_show()
    payment = await waiting(app, alice, show_id)
    await paid_on_the_page(app.config.gateway_url, payment)
    true = a_webhook(payment, str(payment.reference))
    raw, headers = FORGERIES[forgery](true)
    before, refused = await dump(app, show_id), await counted()

    response = await sent(api, true, raw=raw, headers=headers)

    assert (response.status_code, problem(response)["code"]) == (400, "bad_webhook"), response.text
    assert await dump(app, show_id) == before
    assert await counted() == refused + 1
    assert (await sent(api, true)).status_code == 200
    assert [row["state"] for row in (await dump(app, show_id))["booking"]] == ["confirmed"]


async def counted() -> float:
    """The number of webhooks refused so far, for any reason."""
    lines = metrics.text().decode().splitlines()
    return sum(
        float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("holdfast_webhooks_refused")
    )


async def test_one_that_is_too_long_is_not_read(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan
) -> None:
    show_id = await a_show()
    true = a_webhook(await waiting(app, alice, show_id))
    raw = changed(true, padding="x" * app.config.webhook_bytes_max)
    before = await dump(app, show_id)

    response = await sent(api, true, raw=raw, headers=SignedWebhook(raw).headers)

    assert (response.status_code, problem(response)["code"]) == (413, "body_too_large")
    assert await dump(app, show_id) == before


async def test_one_that_is_sent_again_is_taken_and_changes_nothing(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan
) -> None:
    show_id = await a_show()
    booking = await hold_seats(alice, show_id)
    assert (await pay(alice, booking)).status_code == 200
    payment = await app.payments.latest(*from_public_id(booking))
    assert payment is not None
    true = a_webhook(payment, str(payment.reference))

    first = await sent(api, true)
    before = await dump(app, show_id)
    again = await sent(api, true)

    assert (first.status_code, again.status_code, again.json()) == (200, 200, {"stored": True})
    assert await dump(app, show_id) == before


async def test_a_hundred_copies_at_once_confirm_one_booking(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan
) -> None:
    """Cell 11."""
    show_id = await a_show()
    payment = await waiting(app, alice, show_id)
    await paid_on_the_page(app.config.gateway_url, payment)
    true = a_webhook(payment, str(payment.reference))

    responses = await asyncio.gather(*(sent(api, true) for _ in range(100)))

    assert {response.status_code for response in responses} == {200}
    after = await dump(app, show_id)
    assert [row["state"] for row in after["booking"]] == ["confirmed"]
    assert len(after["ticket"]) == 2
    assert [row["kind"] for row in after["outbox"]].count("booking.confirmed") == 1
    assert len([row for row in after["journal"] if row["account"] == "gateway:sandbox"]) == 1


async def paid_on_the_page(gateway_url: str, payment: Payment) -> None:
    """What its payer does there."""
    headers = {"Authorization": f"Bearer {api_key(GATEWAY_SECRET)}"}
    async with httpx2.AsyncClient(base_url=gateway_url, headers=headers) as client:
        path = f"/v1/payments/{payment.reference}/confirm"
        assert (await client.post(path, json={"method": "tok_ok"})).status_code == 200


async def test_another_gateways_name_leads_nowhere(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan
) -> None:
    true = a_webhook(await waiting(app, alice, await a_show()))

    response = await api.post("/webhooks/stripe", content=true.raw, headers=true.headers)

    assert (response.status_code, problem(response)["code"]) == (404, "no_such_route")


async def test_a_gateway_needs_neither_a_token_nor_a_content_type(
    app: App, api: httpx2.AsyncClient, a_show: Show, alice: Fan
) -> None:
    true = a_webhook(await waiting(app, alice, await a_show()))

    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert (await sent(api, true, headers={"Content-Type": kind})).status_code == 200


async def test_a_body_that_never_ends_is_not_waited_for(config: Config) -> None:
    application = asgi_app(replace(config, request_timeout_s=1))
    answers: list[Message] = []
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Message:
        return pieces.pop() if pieces else await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Message) -> None:
        answers.append(message)

    scope = {"type": "http", "method": "POST", "path": PATH, "headers": [], "query_string": b""}
    async with started(application):
        await asyncio.wait_for(application(scope, receive, send), 5)

    assert answers[0]["status"] == 503


@asynccontextmanager
async def shop(config: Config, folder: Path) -> AsyncIterator[tuple[httpx2.AsyncClient, str]]:
    """A box office that is reached over the network, with a sandbox that writes to it: (API, sandbox)."""
    applications: list[Application] = []

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await applications[0](scope, receive, send)

    async with served(answer) as url:
        setup = SandboxSetup(folder=folder, secret=GATEWAY_SECRET, notify_url=url + PATH)
        async with open_sandbox(setup) as sandbox, served(sandbox) as gateway_url:
            applications.append(asgi_app(replace(config, gateway_url=gateway_url)))
            async with started(applications[0]), httpx2.AsyncClient(base_url=url) as client:
                yield client, gateway_url


@pytest.mark.parametrize("method", ["tok_ok", "tok_twice", "tok_webhook_first", "tok_out_of_order"])
async def test_a_payment_and_its_letters_are_one_purchase(
    app: App, config: Config, a_show: Show, tmp_path: Path, method: str
) -> None:
    show_id = await a_show()
    async with shop(config, tmp_path) as (client, _):
        (fan,) = await cast.fans(app, client, 1)
        booking = await hold_seats(fan, show_id)
        paid = await pay(fan, booking, method)
        sql = "SELECT count(*) FROM gateway_webhook WHERE show_id = $1"

        async def came() -> bool:
            return bool(await app.postgres.fetchval(sql, show_id))

        await until(came)

        assert (paid.status_code, await load_state(fan, booking)) == (200, "confirmed")
    after = await dump(app, show_id)
    assert (len(after["ticket"]), len(after["payment"])) == (2, 1)


async def test_a_payer_on_the_page_is_confirmed_by_the_letter_alone(
    app: App, config: Config, a_show: Show, tmp_path: Path
) -> None:
    show_id = await a_show()
    async with shop(config, tmp_path) as (client, gateway_url):
        (fan,) = await cast.fans(app, client, 1)
        booking = await hold_seats(fan, show_id)
        assert (await pay(fan, booking, "")).status_code == 202
        payment = await app.payments.latest(*from_public_id(booking))
        assert payment is not None

        await paid_on_the_page(gateway_url, payment)

        async def is_confirmed() -> bool:
            return bool(await load_state(fan, booking) == "confirmed")

        await until(is_confirmed)


class TestOperators:
    async def dead(self, app: App, a_show: Show) -> SignedWebhook:
        """A webhook that was given up; its payment has been taken at the gateway since."""
        payment = await paying(app, await a_show(), 1)
        await app.payments.give_back(payment, NO, PaymentStep.DECLINED)
        charge = await charged(app, payment)
        webhook = a_webhook(payment, str(charge.reference))
        await app.postgres.execute(
            "INSERT INTO gateway_webhook"
            " (gateway, event_id, kind, show_id, number, attempt, body, dead, tries, reason)"
            " VALUES ('sandbox', $1, 'payment.captured', $2, $3, $4, $5, true, 4, 'a test')",
            webhook.event_id,
            payment.show_id,
            payment.number,
            payment.attempt,
            webhook.raw,
        )
        return webhook

    async def test_admins_list_and_replay_the_dead(
        self, app: App, api: httpx2.AsyncClient, a_show: Show
    ) -> None:
        (admin,) = await cast.fans(app, api, 1, Role.ADMIN)
        webhook = await self.dead(app, a_show)

        listed = await admin.get("/admin/webhooks", state="dead", size=200)
        replayed = await admin.post(f"/admin/webhooks/sandbox/{webhook.event_id}/replay")
        missing = await admin.post("/admin/webhooks/sandbox/evt_unknown/replay")

        page = next(one for one in listed.json()["webhooks"] if one["event_id"] == webhook.event_id)
        assert (page["state"], page["reason"], page["tries"]) == ("dead", "a test", 4)
        assert (replayed.status_code, replayed.json()["state"]) == (200, "done")
        assert (missing.status_code, problem(missing)["code"]) == (404, "no_such_webhook")

    async def test_differences_are_for_admins(self, app: App, api: httpx2.AsyncClient, alice: Fan) -> None:
        (admin,) = await cast.fans(app, api, 1, Role.ADMIN)

        page = await admin.get("/admin/payments/differences")
        paths = ("/admin/payments/differences", "/admin/webhooks")
        refused = [(await alice.get(path)).status_code for path in paths]

        assert page.json()["gateway"] == "sandbox"
        assert refused == [403, 403]

    async def test_the_same_at_a_terminal(self, app: App, config: Config, a_show: Show) -> None:
        env = {
            **engines_of(config),
            "HOLDFAST_GATEWAY_URL": config.gateway_url,
            "HOLDFAST_GATEWAY_SECRET": config.gateway_secret,
        }
        webhook = await self.dead(app, a_show)
        unknown = await confirmed(app, await paying(app, await a_show(), 1))

        listed = await run_holdfast("webhooks", "list", "--dead", "--limit", "200", "--json", **env)
        replayed = await run_holdfast("webhooks", "replay", webhook.event_id, **env)
        absent = await run_holdfast("webhooks", "replay", "evt_unknown", **env)
        compared = await run_holdfast("reconcile", "--since", "5m", "--json", **env)
        unreadable = await run_holdfast("reconcile", "--since", "soon", **env)

        assert webhook.event_id in [page["event_id"] for page in listed.page]
        assert (replayed.code, webhook.event_id in replayed.output) == (0, True), replayed
        assert (absent.code, unreadable.code) == (2, 2)
        assert compared.code == 1, compared
        assert (unknown.key, "missing") in [(one["key"], one["kind"]) for one in compared.page["differences"]]
        assert compared.page["seen"] >= 1
