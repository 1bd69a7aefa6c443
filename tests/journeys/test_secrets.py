"""Secrets of the environment: no command prints one, in no answer and no error (R31)."""

from pathlib import Path

import pytest

from holdfast.config import Config
from tests.support.cli_process import run_holdfast

CANARY = "canary-5f2e9b7c1d"
SECRETS = {
    "HOLDFAST_STRIPE_SECRET_KEY": f"sk_test_{CANARY}",
    "HOLDFAST_STRIPE_WEBHOOK_SECRETS": f"whsec_{CANARY}",
    "HOLDFAST_RAZORPAY_KEY_SECRET": CANARY,
    "HOLDFAST_RAZORPAY_WEBHOOK_SECRETS": CANARY,
    "HOLDFAST_GATEWAY_SECRET": CANARY,
    "HOLDFAST_MAIL_URL": f"smtp://office:{CANARY}@127.0.0.1:9",
    "HOLDFAST_SMS_URL": f"http://127.0.0.1:9/{CANARY}",
    "HOLDFAST_PUSH_URL": f"http://127.0.0.1:9/{CANARY}",
}


@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "--json"),
        ("doctor",),
        ("serve", "--port", "0", "--host", "no.such.host.invalid"),
        ("account", "list", "--json"),
        ("reconcile",),
    ],
    ids=lambda command: " ".join(command[:2]),
)
async def test_no_command_prints_a_secret(command: tuple[str, ...], config: Config, tmp_path: Path) -> None:
    env = {
        "HOLDFAST_DATABASE_URL": config.database_url,
        "HOLDFAST_REDIS_URL": config.redis_url,
        "HOLDFAST_GATEWAY": "stripe",
        "HOLDFAST_STRIPE_API_URL": "http://127.0.0.1:9",
        "HOLDFAST_STRIPE_PUBLISHABLE_KEY": "pk_test_public",
    }
    ended = await run_holdfast(*command, "--data", str(tmp_path), **env, **SECRETS)

    assert ended.output + ended.words  # it did say something
    assert CANARY not in ended.output + ended.words
