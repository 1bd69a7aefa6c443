"""Is this installation fit for an on-sale tomorrow? Looks, and changes nothing.

Every check is a file of `runtime`: check_settings, check_machine, check_ledger, check_redis,
check_certificates, check_services, check_pods. They run side by side, each within a time limit (bounded.py).
"""

import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import NoReturn

from holdfast.cli import print_json
from holdfast.cli.doctor_machines import compare_machines
from holdfast.cli.output import show_findings
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.runtime.bounded import Check, run_all
from holdfast.runtime.check_certificates import check_certificates
from holdfast.runtime.check_clocks import check_clocks
from holdfast.runtime.check_ledger import check_ledger, check_replica
from holdfast.runtime.check_machine import check_folder, check_programs
from holdfast.runtime.check_pods import pod_checks
from holdfast.runtime.check_redis import check_bus, check_holds, check_limits
from holdfast.runtime.check_services import check_gateway_answer, check_mail_server, check_sign_in
from holdfast.runtime.check_settings import (
    Finding,
    Severity,
    check_limits_are_on,
    check_settings,
    give_verdict,
    is_trial,
)
from holdfast.web import log


async def report(config: Config, as_json: bool) -> NoReturn:
    """Prints every finding. Exit code 1: something must be put right first."""
    log.set_up(level="ERROR")  # to stderr: an adapter may log what a finding says in plain words
    found = [finding async for finding in findings(config)]
    if as_json:
        print_json([finding.page() for finding in found])
    else:
        show_findings(found, give_verdict(found, trial=is_trial(config)))
    sys.stdout.flush()
    # At once: a thread that waits for a dead disk or name server would keep the process from ending.
    os._exit(1 if any(finding.health is Severity.FAIL for finding in found) else 0)


async def findings(config: Config) -> AsyncIterator[Finding]:
    """In the order of a start: this machine, settings, engines, other servers."""
    for finding in (*check_programs(config), *check_settings(config, trial=is_trial(config))):
        yield finding
    yield check_limits_are_on(config)
    async for finding in run_all(_checks(config, _with_running_engines(config))):
        yield finding


def _checks(given: Config, found: Config) -> list[Check]:
    """`found`: the settings with the addresses of embedded engines that run."""
    checks = [
        Check("data folder", partial(check_folder, found, trial=is_trial(given))),
        Check("ledger", partial(check_ledger, found, given)),
        Check("holds", partial(check_holds, found.redis_url)),
        Check("clocks of the engines", partial(check_clocks, found)),
        Check("machines", partial(_compare_machines, found)),
        Check("rate limits", partial(check_limits, found)),
        Check("bus", partial(check_bus, found)),
        Check("certificates", partial(check_certificates, found)),
        Check("answer of the gateway", partial(check_gateway_answer, given)),
        Check("mail server", partial(check_mail_server, given)),
        Check("sign-in services", partial(check_sign_in, given)),
    ]
    replica = Check("replica", partial(check_replica, found.replica_url))
    return [*checks, *([replica] if found.replica_url else []), *pod_checks(found, given)]


async def _compare_machines(config: Config) -> AsyncIterator[Finding]:
    if config.redis_url:
        yield await compare_machines(config.redis_url, config)


def _with_running_engines(config: Config) -> Config:
    running = DataFolder(config.data_dir).running()
    if running is None:
        return config
    return replace(
        config,
        database_url=config.database_url or running.database_url,
        redis_url=config.redis_url or running.redis_url,
    )
