"""What the doctor and a start find in the settings of a sale."""

from typing import Any

import pytest

from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.runtime.check_settings import Finding, check_settings, is_trial, refuse_or_warn

DATABASE = "postgresql://db.example/box_office"
STRIPE = {"gateway": "stripe", "stripe_secret_key": "sk_live_1", "stripe_webhook_secrets": "whsec_1"}


def find(what: str, **settings: Any) -> Finding:
    config = Config(database_url=DATABASE, **{"gateway": "none", **settings})
    [found] = [found for found in check_settings(config, trial=is_trial(config)) if found.what == what]
    return found


@pytest.mark.parametrize(
    ("settings", "health", "words"),
    [
        ({"gateway": ""}, "fail", "set HOLDFAST_GATEWAY to stripe, razorpay, none or sandbox"),
        ({"gateway": "sandbox"}, "fail", "set HOLDFAST_GATEWAY to stripe, razorpay or none"),
        ({"gateway": "nonsense"}, "fail", "HOLDFAST_GATEWAY is 'nonsense'"),
        ({"gateway": "razorpay"}, "fail", "HOLDFAST_RAZORPAY_KEY_ID is not set"),
        ({"gateway": "none"}, "ok", ""),
        (STRIPE, "ok", ""),
        (STRIPE | {"stripe_secret_key": "sk_test_1"}, "warn", "live keys"),
        (STRIPE | {"stripe_webhook_secrets": ""}, "warn", "set HOLDFAST_STRIPE_WEBHOOK_SECRETS"),
    ],
)
def test_the_payment_gateway_must_be_chosen_complete_and_real(
    settings: dict[str, str], health: str, words: str
) -> None:
    found = find("payment gateway", **settings)

    assert found.health == health
    assert words in found.fix


@pytest.mark.parametrize(
    ("settings", "what", "health", "words"),
    [
        ({}, "mail", "warn", "set HOLDFAST_MAIL_URL"),
        ({"mail_url": "mail.example"}, "mail", "fail", "HOLDFAST_MAIL_URL is invalid"),
        ({"mail_url": "smtp://m.example", "mail_from": "Box <a@b.example>"}, "mail", "ok", ""),
        ({}, "public address", "warn", "set HOLDFAST_PUBLIC_URL"),
        ({"public_url": "tickets"}, "public address", "fail", "not a web address"),
        ({"public_url": "http://a.example"}, "public address", "warn", "use https"),
        ({"public_url": "https://a.example"}, "public address", "ok", ""),
        ({"trusted_proxies": "nginx"}, "proxies", "fail", "'nginx' is not an address"),
        ({"trusted_proxies": "*"}, "proxies", "warn", "name your proxies"),
        ({"trusted_proxies": "10.0.0.0/8, ::1"}, "proxies", "ok", ""),
    ],
)
def test_mail_addresses_and_proxies_are_looked_at(
    settings: dict[str, str], what: str, health: str, words: str
) -> None:
    found = find(what, **settings)

    assert found.health == health
    assert words in found.fix


def test_how_long_data_is_stored_is_listed() -> None:
    assert "notices 90 days" in find("retention").detail
    assert "HOLDFAST_NOTICES_KEEP_D a number" in find("retention", notices_keep_d=0).fix


def test_a_trial_on_embedded_data_needs_neither_mail_nor_a_public_address() -> None:
    config = Config()

    assert is_trial(config)
    assert {found.health for found in check_settings(config, trial=True)} == {"ok"}


def test_a_start_refuses_settings_that_cannot_work_and_warns_of_a_chosen_sandbox() -> None:
    with pytest.raises(OperatorError, match="HOLDFAST_MAIL_URL is invalid"):
        refuse_or_warn(Config(database_url=DATABASE, gateway="none", mail_url="x"), trial=False)

    warnings = refuse_or_warn(Config(database_url=DATABASE, gateway="sandbox"), trial=False)

    assert "without paying" in warnings[0]


def test_a_database_of_the_operators_has_no_default_gateway() -> None:
    assert Config.from_env({}).gateway == "sandbox"
    assert Config.from_env({"HOLDFAST_DATABASE_URL": DATABASE}).gateway == ""
    chosen = {"HOLDFAST_DATABASE_URL": DATABASE, "HOLDFAST_GATEWAY": "stripe"}
    assert Config.from_env(chosen).gateway == "stripe"
