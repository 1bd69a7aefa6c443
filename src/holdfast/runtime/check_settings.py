"""Is the box office configured to sell? The doctor prints every finding; a start refuses or warns.

A *trial* has embedded data and the sandbox: mail, a public address and proxies are not needed to try things.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlsplit

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.runtime.sandbox_beside import refuse_without_gateway

TEST_KEYS = ("sk_test_", "rk_test_", "rzp_test_")
KEEP_UNITS = {"_keep_h": "hours", "_keep_d": "days"}


class Severity(StrEnum):
    OK = "ok"
    WARN = "warn"  # it runs, but needs attention
    FAIL = "fail"  # it will not, or must not


@dataclass(frozen=True, slots=True)
class Finding:
    what: str
    health: Severity
    detail: str
    fix: str = ""

    def page(self) -> dict[str, Any]:
        return asdict(self)


def is_trial(config: Config) -> bool:
    """Of the operator's settings, before the address of an embedded engine is filled in."""
    return not config.database_url and config.gateway == "sandbox"


def check_settings(config: Config, *, trial: bool) -> Iterator[Finding]:
    yield _gateway(config, trial)
    yield _mail(config, trial)
    yield _public_address(config, trial)
    yield _proxies(config)
    yield _retention(config)
    yield _sign_in_services(config)
    yield _traces(config)


def _gateway(config: Config, trial: bool) -> Finding:
    from holdfast.payments.gateways import check_gateway

    what = "payment gateway"
    try:
        refuse_without_gateway(config)
        check_gateway(config)
    except OperatorError as trouble:
        return Finding(what, Severity.FAIL, config.gateway or "not chosen", str(trouble))
    if config.gateway == "sandbox":
        if trial:
            return Finding(what, Severity.OK, "sandbox: no money moves, for trials on embedded data")
        detail = "sandbox: every buyer can have tickets without paying"
        return Finding(what, Severity.FAIL, detail, "set HOLDFAST_GATEWAY to stripe, razorpay or none")
    if f"{config.stripe_secret_key} {config.razorpay_key_id}".strip().startswith(TEST_KEYS):
        return Finding(
            what, Severity.WARN, f"{config.gateway} in test mode", "use the live keys to take money"
        )
    if config.gateway == "none":
        return Finding(what, Severity.OK, "none: only free shows can be on sale")
    secrets = {"stripe": config.stripe_webhook_secrets, "razorpay": config.razorpay_webhook_secrets}
    if not secrets.get(config.gateway, "-"):
        name = f"HOLDFAST_{config.gateway.upper()}_WEBHOOK_SECRETS"
        return Finding(
            what,
            Severity.WARN,
            f"{config.gateway} without webhooks: payments on its page are noticed late",
            f"set {name}: docs/operating/gateways.md",
        )
    return Finding(what, Severity.OK, config.gateway)


def _mail(config: Config, trial: bool) -> Finding:
    from holdfast.notifications.senders import build_senders

    try:
        build_senders(config)
    except OperatorError as trouble:
        return Finding("mail", Severity.FAIL, "cannot be sent", str(trouble))
    if config.mail_url:
        return Finding(
            "mail", Severity.OK, f"by {urlsplit(config.mail_url).hostname}, from {config.mail_from}"
        )
    if trial:
        return Finding("mail", Severity.OK, "none is sent")
    fix = "set HOLDFAST_MAIL_URL and HOLDFAST_MAIL_FROM: docs/operating/notices.md"
    return Finding("mail", Severity.WARN, "no mail server: buyers get no tickets by mail", fix)


def _public_address(config: Config, trial: bool) -> Finding:
    what, fix = "public address", "set HOLDFAST_PUBLIC_URL, for example https://tickets.your.domain"
    if not config.public_url:
        detail = "taken from each request; links in mails are missing"
        return Finding(what, Severity.OK if trial else Severity.WARN, detail, "" if trial else fix)
    try:
        url = urlsplit(config.public_url)
        is_url = url.scheme in ("http", "https") and bool(url.hostname) and not url.query
    except ValueError:
        is_url = False
    if not is_url:
        return Finding(
            what, Severity.FAIL, config.public_url, f"HOLDFAST_PUBLIC_URL is not a web address: {fix}"
        )
    if url.scheme == "http" and not trial:
        return Finding(what, Severity.WARN, config.public_url, "use https: passwords and tickets travel here")
    return Finding(what, Severity.OK, config.public_url)


def _proxies(config: Config) -> Finding:
    what, trusted = "proxies", config.trusted_proxies
    if trusted == "*":
        fix = "name your proxies in HOLDFAST_TRUSTED_PROXIES: now every client can claim any address"
        return Finding(what, Severity.WARN, "every sender is trusted", fix)
    for part in filter(None, (part.strip() for part in trusted.split(","))):
        try:
            ip_network(part, strict=False)
        except ValueError:
            fix = f"HOLDFAST_TRUSTED_PROXIES: {part!r} is not an address or network such as 10.0.0.0/8"
            return Finding(what, Severity.FAIL, trusted, fix)
    if os.environ.get("FORWARDED_ALLOW_IPS"):
        fix = "FORWARDED_ALLOW_IPS is not read: set HOLDFAST_TRUSTED_PROXIES, and unset it"
        return Finding(what, Severity.WARN, f"trusted: {trusted or 'none'}", fix)
    return Finding(what, Severity.OK, f"client addresses are taken from {trusted or 'no proxy'}")


def _retention(config: Config) -> Finding:
    """Every setting that says how long something is stored; 0 is permanently."""
    stored, permanent = [], []
    for field in fields(config):
        for end, unit in KEEP_UNITS.items():
            if field.name.endswith(end):
                stored.append(
                    f"{field.name.removesuffix(end).replace('_', ' ')} {getattr(config, field.name)} {unit}"
                )
                permanent += [] if getattr(config, field.name) else [f"HOLDFAST_{field.name.upper()}"]
    if permanent:
        fix = f"data is stored permanently and grows: give {', '.join(permanent)} a number"
        return Finding("retention", Severity.WARN, ", ".join(stored), fix)
    return Finding("retention", Severity.OK, ", ".join(stored))


def check_limits_are_on(config: Config) -> Finding:
    """Of the doctor alone: a rehearsal or a house behind a strict proxy may start without some of them."""
    limits = [one for one in fields(config) if "0: no limit" in one.metadata["why"] and one.default]
    off = [f"HOLDFAST_{one.name.upper()}" for one in limits if not getattr(config, one.name)]
    if not off:
        return Finding("limits", Severity.OK, f"all {len(limits)} against bots and guessed passwords are on")
    fix = (
        "one client can hold seats or try passwords without end: give each a number, or remove it from the "
        "settings; docs/operating/limits.md"
    )
    return Finding("limits", Severity.WARN, f"switched off: {', '.join(off)}", fix)


def give_verdict(found: Sequence[Finding], *, trial: bool) -> str:
    """One sentence about all findings, for the end of the list."""
    bad, doubtful = (sum(one.health is health for one in found) for health in (Severity.FAIL, Severity.WARN))
    if bad:
        return f"not fit for an on-sale: {_lines(bad)} marked fail"
    if trial:
        return "fit for trying things: engines are embedded and no money moves; docs/operating/sizes.md"
    if doubtful:
        return f"fit for an on-sale, if you accept the warnings: {_lines(doubtful)} marked warn"
    return "fit for an on-sale"


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"


def refuse_or_warn(config: Config, *, trial: bool) -> list[str]:
    """At a start: OperatorError for settings that cannot work, else a line per warning."""
    warnings = []
    for found in check_settings(config, trial=trial):
        if found.health is Severity.FAIL and not _is_chosen_sandbox(config, found):
            raise OperatorError(found.fix)
        if found.health is not Severity.OK:
            warnings.append(f"{found.what}: {found.detail}; {found.fix}")
    return warnings


def _is_chosen_sandbox(config: Config, found: Finding) -> bool:
    """The operator chose the sandbox by name, perhaps to rehearse: it starts, with a warning."""
    return found.what == "payment gateway" and config.gateway == "sandbox"


def _sign_in_services(config: Config) -> Finding:
    from holdfast.oidc.client import read_providers

    what = "sign-in services"
    try:
        found = read_providers(config)
    except OperatorError as trouble:
        return Finding(what, Severity.FAIL, "not readable", str(trouble))
    return Finding(what, Severity.OK, ", ".join(found) or "none: people sign in with a password or by mail")


def _traces(config: Config) -> Finding:
    from holdfast.engines.send_traces import check_traces

    if not config.traces_url:
        return Finding("traces", Severity.OK, "none are recorded")
    try:
        check_traces(config)
    except OperatorError as trouble:
        return Finding("traces", Severity.FAIL, "cannot be sent", str(trouble))
    where = urlsplit(config.traces_url).hostname
    return Finding("traces", Severity.OK, f"of {config.traces_ratio:.2%} of requests, to {where}")
