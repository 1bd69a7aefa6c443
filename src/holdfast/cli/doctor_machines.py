"""The doctor's look at other machines of the same house: do they have the same settings and secrets?"""

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.machine_settings import MachineSettings
from holdfast.engines.open_redis import open_redis
from holdfast.runtime.check_settings import Finding, Severity

WHAT = "machines"
PAGE = "docs/operating/cluster.md"


async def compare_machines(redis_url: str, config: Config) -> Finding:
    """A secret that differs is a fault: sessions, webhooks or payments of one machine fail at another."""
    redis = open_redis(redis_url, links_max=1, timeout_s=config.redis_timeout_ms / 1000)
    try:
        others, differences = await MachineSettings(redis, config).compare()
    except EngineDown:
        fix = "start Redis, or correct HOLDFAST_REDIS_URL; then run the doctor again"
        return Finding(WHAT, Severity.WARN, "not compared: Redis is not reached", fix)
    finally:
        await redis.close()
    if not differences:
        return Finding(WHAT, Severity.OK, _same(len(others)))
    named = [f"HOLDFAST_{one.setting.upper()} on {', '.join(one.machines)}" for one in differences]
    health = Severity.FAIL if any(one.is_secret for one in differences) else Severity.WARN
    fix = f"set the same on every machine ({PAGE}): {'; '.join(named)}"
    return Finding(WHAT, health, f"{len(differences)} settings differ from those here", fix)


def _same(others: int) -> str:
    if not others:
        return "no other machine has reported its settings"
    return f"{others} other{'s have' if others > 1 else ' has'} the same settings"
