"""Do other companies' servers answer: the payment gateway, the mail server, sign-in services."""

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.errors import OperatorError
from holdfast.engines.metrics import metrics
from holdfast.notifications.notice import Channel
from holdfast.notifications.senders import Unreachable, build_senders
from holdfast.payments import open_gateway
from holdfast.payments.gateway import Gateway, GatewayDown
from holdfast.runtime.check_settings import Finding, Severity
from holdfast.runtime.sandbox_beside import SANDBOX_URL, with_gateway

GATEWAY_SLOW_S = 2.0  # the alert HoldfastGatewayLate has the same
GATEWAY_PAUSE_S = 30.0
MAIL_WITHIN_S = 5
ANSWER = "answer of the gateway"


async def probe_gateway(gateway: Gateway) -> float | None:
    """Seconds until it listed its newest payments; None: no answer. Nothing is changed there."""
    began = time.monotonic()
    try:
        await gateway.list_recent(since=datetime.now(UTC))
    except GatewayDown:
        return None
    return time.monotonic() - began


async def check_gateway_answer(config: Config) -> AsyncIterator[Finding]:
    try:
        gateway = _open_gateway(config)
    except OperatorError:  # `check_settings` has a line for it
        return
    if gateway is None:
        return
    try:
        took_s = await probe_gateway(gateway)
    finally:
        await gateway.close()
    yield judge_gateway(took_s, config)


def _open_gateway(config: Config) -> Gateway | None:
    """None: there is none to ask. The sandbox beside a server has its address in a file."""
    if config.gateway in ("", "none"):
        return None
    if config.gateway == "sandbox" and not config.gateway_url:
        if not (DataFolder(config.data_dir).run / SANDBOX_URL).exists():
            return None
        config = with_gateway(config)
    return open_gateway(config)


def judge_gateway(took_s: float | None, config: Config) -> Finding:
    if took_s is None:
        detail = f"none within {config.gateway_timeout_ms / 1000:.0f} s"
        fix = (
            "no buyer can pay: look at its status page, at our keys and at the way out of this network; "
            "do not open a sale before it answers"
        )
        return Finding(ANSWER, Severity.FAIL, detail, fix)
    detail = f"after {took_s:.2f} s"
    if took_s > GATEWAY_SLOW_S:
        fix = (
            "payments will queue up in an on-sale: look at its status page and at the network between us, "
            "and lower the rate of waiting rooms until it is quick again"
        )
        return Finding(ANSWER, Severity.WARN, detail, fix)
    return Finding(ANSWER, Severity.OK, detail)


class GatewayGauge:
    """Between two sales no payment shows that the gateway is slow."""

    def __init__(self, gateway: Gateway, config: Config) -> None:
        self._gateway = gateway
        self._timeout_s = config.gateway_timeout_ms / 1000

    async def look(self) -> int:
        """A job; always returns 0: there is no backlog."""
        if self._gateway.name != "none":
            took_s = await probe_gateway(self._gateway)
            metrics.measure("gateway_probe_seconds", self._timeout_s if took_s is None else took_s)
        return 0


async def check_mail_server(config: Config) -> AsyncIterator[Finding]:
    """Connects and signs in; sends nothing."""
    if not config.mail_url:
        return
    try:
        sender = build_senders(replace(config, mail_timeout_s=min(config.mail_timeout_s, MAIL_WITHIN_S)))
    except OperatorError:  # `check_settings` has a line for it
        return
    began = time.monotonic()
    try:
        async with sender[Channel.MAIL].open():
            took_s = time.monotonic() - began
    except Unreachable as trouble:
        fix = f"buyers get no tickets by mail until it answers: {trouble}; is HOLDFAST_MAIL_URL right?"
        yield Finding("mail server", Severity.FAIL, "not reached", fix)
        return
    yield Finding("mail server", Severity.OK, f"lets us in after {took_s:.2f} s")


async def check_sign_in(config: Config) -> AsyncIterator[Finding]:
    """Whether each one's configuration document can be read. `check_settings` has read our own setting."""
    from holdfast.oidc import ProviderDown
    from holdfast.oidc.client import ProviderClient

    try:
        client = ProviderClient(config)
    except OperatorError:
        return
    for provider in client.providers.values():
        what = f"sign-in with {provider.id}"
        try:
            await client.discover(provider.id)
        except ProviderDown as down:
            fix = f"people cannot sign in with it: {down.__cause__!r}"
            yield Finding(what, Severity.FAIL, f"{provider.issuer} not reached", fix)
        else:
            yield Finding(what, Severity.OK, provider.issuer)
    await client.close()
