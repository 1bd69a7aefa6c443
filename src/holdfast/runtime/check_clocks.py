"""Do the clocks of both engines agree? Each is compared with ours; the difference is theirs."""

from collections.abc import AsyncIterator
from contextlib import suppress

from holdfast.config import Config
from holdfast.engines.clocks import CLOCK_OFF_MAX_S, compare_ledger_clock
from holdfast.engines.errors import OperatorError
from holdfast.engines.startup_checks import connect, holds_facts
from holdfast.runtime.check_settings import Finding, Severity

CLOSE_WITHIN_S = 2.0


async def check_clocks(config: Config) -> AsyncIterator[Finding]:
    if not config.database_url or not config.redis_url:
        return
    try:
        holds_s = (await holds_facts(config.redis_url)).ahead_s
        connection = await connect(config.session_url)
    except OperatorError:  # the engine has a line of its own
        return
    try:
        ledger_s = await compare_ledger_clock(connection)
    finally:
        with suppress(TimeoutError):
            await connection.close(timeout=CLOSE_WITHIN_S)
    yield judge_clocks(holds_s - ledger_s)


def judge_clocks(difference_s: float) -> Finding:
    detail = f"Redis is {difference_s * 1000:+.0f} ms from PostgreSQL"
    if abs(difference_s) <= CLOCK_OFF_MAX_S:
        return Finding("clocks of the engines", Severity.OK, detail)
    fix = (
        "holds would end earlier in one engine than in the other: let one time server (chrony, "
        "systemd-timesyncd) set the clocks of all machines"
    )
    return Finding("clocks of the engines", Severity.WARN, detail, fix)
