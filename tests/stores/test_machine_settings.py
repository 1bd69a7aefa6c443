"""Machines of one house leave marks of their settings, and the doctor compares them."""

import secrets
from dataclasses import replace
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.cli.doctor_machines import compare_machines
from holdfast.engines.machine_settings import KEY, MachineSettings, SettingsReport, mark_settings
from holdfast.runtime.check_settings import Severity
from tests.support.own_engines import Stage

TOTP = secrets.token_hex(16)


async def report(app: App, machine: str, **settings: int | str) -> None:
    given: dict[str, Any] = {"totp_key": TOTP, **settings}
    config = replace(app.config, data_dir=f"/var/lib/{machine}", **given)
    await MachineSettings(app.redis, config).report()


async def look(app: App, **settings: int | str) -> tuple[Severity, str]:
    given: dict[str, Any] = {"totp_key": TOTP, **settings}
    config = replace(app.config, **given)  # the machine of the application, which leaves its own marks
    found = await compare_machines(config.redis_url, config)
    return found.health, found.fix


async def test_the_doctor_names_settings_that_differ_and_the_machine(stage: Stage) -> None:
    app = stage.app
    await app.redis.call("DEL", KEY)
    assert await look(app) == (Severity.OK, "")
    await report(app, "web1")
    await report(app, "web2", postgres_pool_max=2, database_url="postgresql://other/way")
    assert await look(app) == (Severity.OK, "")

    await report(app, "web2", owner_seats_max=4)
    limit = await look(app)
    await report(app, "web2", totp_key=secrets.token_hex(16))
    secret = await look(app)

    assert (limit[0], "HOLDFAST_OWNER_SEATS_MAX on" in limit[1], "web2" in limit[1]) == (
        Severity.WARN,
        True,
        True,
    )
    assert (secret[0], "HOLDFAST_TOTP_KEY on" in secret[1]) == (Severity.FAIL, True)
    assert "web1" not in limit[1] + secret[1]


async def test_marks_do_not_contain_settings_and_old_reports_do_not_count(stage: Stage) -> None:
    app = stage.app
    await app.redis.call("DEL", KEY)
    await report(app, "web1", gateway_secret="whsec_" + TOTP)
    stored = str(await app.redis.call("HGETALL", KEY))
    old = SettingsReport(at_s=1, marks=mark_settings(replace(app.config, owner_seats_max=4), b"another key"))
    await app.redis.call("HSET", KEY, "gone:/var/lib/gone", msgspec.json.encode(old))

    assert "web1" in stored
    assert TOTP not in stored
    assert (await look(app, gateway_secret="whsec_" + TOTP))[0] is Severity.OK
