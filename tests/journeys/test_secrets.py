"""Secrets of the environment: no command prints one, in no answer and no error (R31)."""

import asyncio
from pathlib import Path

import pytest

from holdfast.config import Config
from tests.support.cli_process import fetch_status, run_holdfast, serve_holdfast
from tests.support.opened import engines_of

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
        **engines_of(config),
        "HOLDFAST_GATEWAY": "stripe",
        "HOLDFAST_STRIPE_API_URL": "http://127.0.0.1:9",
        "HOLDFAST_STRIPE_PUBLISHABLE_KEY": "pk_test_public",
    }
    ended = await run_holdfast(*command, "--data", str(tmp_path), **env, **SECRETS)

    assert ended.output + ended.words  # it did say something
    assert CANARY not in ended.output + ended.words


def files_of(secrets: dict[str, str], folder: Path) -> dict[str, str]:
    """The same secrets in files, as containers and systemd mount them."""
    folder.mkdir()
    for name, value in secrets.items():
        (folder / name).write_text(f"{value}\n")
    return {f"{name}_FILE": str(folder / name) for name in secrets}


async def test_secrets_from_files_reach_every_process_and_no_environment(
    config: Config, tmp_path: Path
) -> None:
    """R31. Every process reads the files itself: environments can be read where processes are listed."""
    engines = engines_of(config)
    mail = {"HOLDFAST_MAIL_FROM": "Box office <tickets@tickets.example>", "HOLDFAST_GATEWAY": "none"}
    env = {**files_of(engines | SECRETS, tmp_path / "secrets"), **mail}

    async with serve_holdfast("serve", "--port", "0", "--data", str(tmp_path / "data"), **env) as opened:
        worker = int((tmp_path / "data" / "run" / "web-1.pid").read_text())
        environment = await asyncio.to_thread(Path(f"/proc/{worker}/environ").read_text)
        status = await asyncio.to_thread(fetch_status, f"{opened['url']}/readyz")

    assert status == 200
    assert CANARY not in environment
    assert f"HOLDFAST_DATABASE_URL={config.database_url}" not in environment


async def test_a_missing_secret_file_stops_a_command_with_one_sentence(tmp_path: Path) -> None:
    ended = await run_holdfast("doctor", HOLDFAST_MAIL_URL_FILE=str(tmp_path / "gone"))

    sentence = f"HOLDFAST_MAIL_URL_FILE: cannot read {tmp_path / 'gone'}: No such file or directory"
    assert (ended.code, ended.output, ended.words) == (2, "", f"holdfast: {sentence}\n")
