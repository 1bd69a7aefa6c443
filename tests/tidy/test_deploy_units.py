"""deploy/: units of systemd, HAProxy, the settings file and the script that makes secrets."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.config import Config, secret_file_names
from holdfast.engines.errors import OperatorError
from holdfast.runtime.launch import DRAIN_S
from holdfast.runtime.secret_files import load_config
from tests.tidy.deploy_files import DEPLOY, environment, output_of, unit, values
from tests.tidy.tree import assert_no_violations

UNITS = {path.name: path.read_text() for path in sorted((DEPLOY / "systemd").glob("holdfast-*"))}
SERVICES = {name: text for name, text in UNITS.items() if name.endswith(".service")}
EXAMPLE = DEPLOY / "holdfast.env.example"
EXPOSURE_MAX = 1.5  # of systemd-analyze security, from 0 to 10
# Every unit has these, so that a new one is not forgotten.
GUARDS = {
    "CapabilityBoundingSet": "",
    "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes",
    "NoNewPrivileges": "yes",
    "PrivateDevices": "yes",
    "PrivateTmp": "yes",
    "ProtectHome": "yes",
    "ProtectKernelTunables": "yes",
    "ProtectSystem": "strict",
    "RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces": "yes",
    "SystemCallArchitectures": "native",
    "UMask": "0077",
    "User": "holdfast",
}


def weak_units(units: dict[str, str]) -> Iterator[str]:
    for name, text in units.items():
        lines = unit(text)
        for guard, value in GUARDS.items():
            if values(lines, guard) != [value]:
                yield f"{name} lacks {guard}={value}"
        loaded = {f"%d/{value.split(':')[0]}" for value in values(lines, "LoadCredential")}
        given = environment(values(lines, "Environment"))
        named = {value for setting, value in given.items() if setting in secret_file_names()}
        yield from (f"{name}: {path} is not both loaded and named" for path in loaded ^ named)


def impatient_units(units: dict[str, str]) -> Iterator[str]:
    """Units that end requests under way: all children get SIGTERM, or the time to drain is too short."""
    for name, text in units.items():
        lines = unit(text)
        if values(lines, "Type") == ["exec"]:
            if values(lines, "KillMode") != ["mixed"]:
                yield f"{name} signals the workers, which their parent stops"
            if int(*values(lines, "TimeoutStopSec")) <= DRAIN_S + 5:
                yield f"{name} is killed while it drains"


def lines_not_for_all(text: str) -> Iterator[str]:
    """Lines that systemd, Docker Compose and kustomize read differently."""
    for line in text.splitlines():
        if line and not line.startswith("#") and not re.fullmatch(r"[A-Z_]+=[^\s'\"$\\#][^'\"$\\#]*", line):
            yield line


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        ("before", "after", "complaint"),
        [
            ("User=holdfast", "User=root", "lacks User=holdfast"),
            ("ProtectSystem=strict", "ProtectSystem=full", "lacks ProtectSystem=strict"),
            ("LoadCredential=redis_url", "LoadCredential=redis", "is not both loaded and named"),
        ],
    )
    def test_a_weak_unit_is_found(self, before: str, after: str, complaint: str) -> None:
        text = SERVICES["holdfast-serve.service"].replace(before, after)

        assert complaint in next(weak_units({"a.service": text}))

    @pytest.mark.parametrize(("before", "after"), [("KillMode=mixed", ""), ("StopSec=45", "StopSec=10")])
    def test_an_impatient_unit_is_found(self, before: str, after: str) -> None:
        text = SERVICES["holdfast-serve.service"].replace(before, after)

        assert len(list(impatient_units({"a.service": text}))) == 1

    @pytest.mark.parametrize("line", ["A='b'", "A=$B", "A=b # c", "export A=b", "A=", "a"])
    def test_a_line_that_is_not_for_all_is_found(self, line: str) -> None:
        assert list(lines_not_for_all(f"# c\n\nB=c d\n{line}")) == [line]


def test_units_have_no_more_rights_than_they_need() -> None:
    assert_no_violations(weak_units(SERVICES))


def test_units_finish_requests_before_they_end() -> None:
    assert_no_violations(impatient_units(SERVICES))


def test_every_timer_has_a_service() -> None:
    timers = {name.removesuffix(".timer") for name in UNITS if name.endswith(".timer")}

    assert timers == {"holdfast-audit", "holdfast-backup"}
    assert {f"{name}.service" for name in timers} <= SERVICES.keys()


def test_systemd_finds_no_fault_in_the_units(tmp_path: Path) -> None:
    for name, text in UNITS.items():
        (tmp_path / name).write_text(text.replace("/opt/holdfast/bin/holdfast", sys.executable))

    printed = output_of("systemd-analyze", "verify", *(tmp_path / name for name in UNITS))

    assert not printed, printed


@pytest.mark.parametrize("name", SERVICES)
def test_systemd_rates_the_units_as_safe(name: str, record_property: Callable[[str, object], None]) -> None:
    printed = output_of(
        "systemd-analyze", "security", "--offline=true", "--no-pager", DEPLOY / "systemd" / name
    )
    if printed is None:
        return

    exposure = re.search(r"Overall exposure level for (\S+): ([\d.]+)", printed)
    assert exposure is not None, printed
    record_property("figure", f"{name}: exposure {exposure[2]} of 10, by systemd-analyze security")
    assert exposure[1] == name
    assert float(exposure[2]) <= EXPOSURE_MAX


def test_haproxy_accepts_its_configuration(tmp_path: Path) -> None:
    """With a certificate of its own and without the account; tests/journeys/test_haproxy.py runs it."""
    text = (DEPLOY / "haproxy.cfg").read_text()
    assert "ssl crt /etc/haproxy/tickets.pem alpn" in text
    text = re.sub(
        r"ssl crt \S+ alpn \S+", "", re.sub(r"^ *(user|group|chroot) .*\n", "", text, flags=re.MULTILINE)
    )
    (tmp_path / "haproxy.cfg").write_text(text)

    printed = output_of("haproxy", "-c", "-f", tmp_path / "haproxy.cfg")

    assert printed is None or "Configuration file is valid" in printed, printed


def test_the_example_of_settings_can_be_read_by_everything_that_reads_it() -> None:
    text = EXAMPLE.read_text()
    hinted = [line[2:] for line in text.splitlines() if re.match(r"# HOLDFAST_\w+=", line)]

    assert list(lines_not_for_all(text)) == []
    config = Config.from_env(environment([*text.splitlines(), *hinted]))
    assert config.gateway == "none"
    assert config.public_url == "https://tickets.example"


def test_secrets_are_made_once_and_fit_together(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    script = ["sh", str(DEPLOY / "secrets.sh"), str(folder)]

    first = subprocess.run(script, capture_output=True, text=True, check=True)
    made = {path.name: path.read_text() for path in folder.iterdir()}
    second = subprocess.run(script, capture_output=True, text=True, check=True)

    password = made["postgres_password"].strip()
    assert re.fullmatch(r"[0-9a-f]{48}", password)
    config = load_config(
        {f"HOLDFAST_{name.upper()}_FILE": str(folder / name) for name in ("database_url", "redis_url")}
    )
    assert config.database_url == f"postgresql://holdfast:{password}@postgres:5432/holdfast"
    assert config.redis_url == f"redis://:{made['valkey.conf'].split()[1]}@valkey:6379/0"
    assert (folder.stat().st_mode & 0o777, (folder / "totp_key").stat().st_mode & 0o777) == (0o700, 0o444)
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
    assert first.stdout + first.stderr == ""
    assert "left as it is" in second.stderr
    assert password not in second.stderr


def test_a_secret_that_was_not_made_is_named() -> None:
    with pytest.raises(OperatorError, match="cannot read /run/secrets/none"):
        load_config({"HOLDFAST_REDIS_URL_FILE": "/run/secrets/none"})


def test_a_command_by_hand_has_the_settings_and_secrets_of_the_units(tmp_path: Path) -> None:
    """Run with other folders, and with a `setpriv` that prints what the program would get."""
    etc, data, programs = tmp_path / "etc", tmp_path / "data", tmp_path / "programs"
    for folder in (etc / "secrets", data, programs):
        folder.mkdir(parents=True)
    (etc / "holdfast.env").write_text(f"{EXAMPLE.read_text()}# HOLDFAST_COMMENT=1\nHOLDFAST_HOUSE=Mill & Co")
    (etc / "secrets" / "redis_url").write_text("redis://:a b'c@127.0.0.1/0\n")
    (etc / "secrets" / "redis_url.new").write_text("not yet")
    (programs / "setpriv").write_text('#!/bin/sh\necho "$@"\nexec env\n')
    (programs / "setpriv").chmod(0o755)
    text = (DEPLOY / "command.sh").read_text()
    script = text.replace("/etc/holdfast", str(etc)).replace("/var/lib/holdfast", str(data))

    done = subprocess.run(
        ["sh", "-c", script, "holdfast", "account", "add", "--name", "Ada L"],
        env={"PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )

    words, *lines = done.stdout.splitlines()
    given = {name: value for name, value in environment(lines).items() if name.startswith("HOLDFAST_")}
    assert words.endswith("--no-new-privs /opt/holdfast/bin/holdfast account add --name Ada L")
    assert given == environment(EXAMPLE.read_text().splitlines()) | {
        "HOLDFAST_DATA_DIR": str(data),
        "HOLDFAST_HOUSE": "Mill & Co",
        "HOLDFAST_REDIS_URL": "redis://:a b'c@127.0.0.1/0",
    }
