"""HOLDFAST_…_FILE: a secret from a file, and one sentence for each way in which that can fail (R31)."""

import asyncio
from dataclasses import fields
from pathlib import Path

import pytest

from holdfast.config import Config, secret_file_names
from holdfast.engines.errors import OperatorError
from holdfast.runtime.secret_files import SECRET_BYTES_MAX, SecretWatch, load_config, read_secret_files

NAME, FILE = "HOLDFAST_MAIL_URL", "HOLDFAST_MAIL_URL_FILE"
CANARY = "smtp://office:canary-5f2e@mail.example"


def refusal(env: dict[str, str]) -> str:
    with pytest.raises(OperatorError) as refused:
        load_config(env)
    return str(refused.value)


def test_every_secret_can_come_from_a_file_and_no_other_setting() -> None:
    secrets = {field.name for field in fields(Config) if not field.repr}

    assert {name.removeprefix("HOLDFAST_").lower() for name in secret_file_names().values()} == secrets
    assert {"database_url", "redis_url", "bus_url", "stripe_secret_key", "mail_url", "totp_key"} <= secrets
    with pytest.raises(SystemExit, match="no such setting: HOLDFAST_GATEWAY_FILE"):
        load_config({"HOLDFAST_GATEWAY_FILE": "/etc/hostname"})


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "\n\n"])
def test_the_value_is_the_file_without_its_line_end(tmp_path: Path, ending: str) -> None:
    (tmp_path / "mail").write_bytes(f"{CANARY}{ending}".encode())

    config = load_config({FILE: str(tmp_path / "mail"), "HOLDFAST_BATCH_MAX": "7"})

    assert (config.mail_url, config.batch_max) == (CANARY, 7)


def test_a_database_from_a_file_has_no_default_gateway(tmp_path: Path) -> None:
    (tmp_path / "url").write_text("postgresql://db.example/holdfast\n")

    assert load_config({"HOLDFAST_DATABASE_URL_FILE": str(tmp_path / "url")}).gateway == ""


def test_an_empty_name_of_a_file_is_none() -> None:
    assert read_secret_files({FILE: "", NAME: CANARY, "PATH": "/bin"}) == {NAME: CANARY, "PATH": "/bin"}


def test_both_ways_at_once_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text(CANARY)

    printed = refusal({NAME: "", FILE: str(tmp_path / "mail")})

    assert printed == "HOLDFAST_MAIL_URL and HOLDFAST_MAIL_URL_FILE are both set: unset one of them"


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", "is empty; unset HOLDFAST_MAIL_URL_FILE if there is no such secret"),
        (b"\n", "is empty; unset HOLDFAST_MAIL_URL_FILE if there is no such secret"),
        (CANARY.encode() + b"\xff", "is not a text in UTF-8"),
        (CANARY.encode() * 2000, f"is longer than {SECRET_BYTES_MAX} bytes"),
    ],
)
def test_a_file_that_cannot_be_the_secret_is_refused_without_its_contents(
    tmp_path: Path, data: bytes, complaint: str
) -> None:
    (tmp_path / "mail").write_bytes(data)

    printed = refusal({FILE: str(tmp_path / "mail")})

    assert printed == f"{FILE}: {tmp_path / 'mail'} {complaint}"
    assert "canary" not in printed


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none", "No such file or directory"), ("", "Is a directory"), ("loop", "Too many levels")],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    printed = refusal({FILE: str(tmp_path / name)})

    assert printed.startswith(f"{FILE}: cannot read {tmp_path / name}: {reason}")


async def test_a_changed_file_is_noticed_once_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mail_url"
    file.write_text("smtp://one")
    watch = SecretWatch({"HOLDFAST_MAIL_URL_FILE": str(file), "HOLDFAST_SMS_URL_FILE": ""})
    waiting = asyncio.create_task(watch.changed(pause_s=0.01))

    file.write_text("smtp://one")
    await asyncio.sleep(0.05)
    is_early = waiting.done()
    file.unlink()  # as while it is replaced
    file.write_text("smtp://two")
    await asyncio.wait_for(waiting, 5)

    assert not is_early
