"""Drive a scaled-down on-sale against a running installation, and say how fast it may admit people.

More and more test buyers buy at the same time, until twice as many no longer buy more. That rate is the
limit; 70 % of it is safe. The installation's metrics tell where a purchase spent its time: the bottleneck.

Refused: other hosts than this one without an explicit flag, and every gateway that is not the sandbox.
"""

import ipaddress
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from holdfast.engines.errors import OperatorError
from holdfast.simulation.bottleneck import Judgement, Level, is_saturated, judge
from holdfast.simulation.buyers import TIMEOUT_S, Buyers, Shop
from holdfast.simulation.rehearsal_options import RehearsalOptions
from holdfast.simulation.stage import Login, Stage

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Rehearsed:
    verdict: Judgement
    left: list[str]  # what the rehearsal could not clear away


async def rehearse(url: str, options: RehearsalOptions, login: Login | None, progress: Progress) -> Rehearsed:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    connector = aiohttp.TCPConnector(limit=options.at_once + 1)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        shop = Shop(session, url)
        await _check(shop, url)
        stage = Stage(shop, login) if login is not None else None
        show_id = await stage.build(options.seats) if stage is not None else options.show
        buyers = Buyers(shop, options, show_id)
        left: list[str] = []
        try:
            await buyers.sign_up()
            levels = await _climb(buyers, options, progress)
        finally:
            left += await _clear(stage, buyers)
    if not any(level.purchases for level in levels):
        kinds = ", ".join(sorted(set().union(*(level.failures for level in levels)))) or "no free seats"
        raise OperatorError(f"no purchase succeeded: {kinds}")
    return Rehearsed(judge(levels, options.admit_per_s, options.buying_share), left)


async def _check(shop: Shop, url: str) -> None:
    status, page = await shop.send("GET", "/readyz")
    if status != 200:
        raise OperatorError(f"{url} is not ready: {page.get('status') or page.get('code')}")
    # Only the gateway in use takes webhooks. This one has no signature: it is refused, and not stored.
    status, _ = await shop.send("POST", "/webhooks/sandbox", {})
    if status in (0, 404):
        raise OperatorError(f"{url} does not use the sandbox gateway: a rehearsal never moves real money")


async def _climb(buyers: Buyers, options: RehearsalOptions, progress: Progress) -> list[Level]:
    """1, 2, 4 … buyers at once, until the limit is found or the time is over."""
    levels: list[Level] = []
    give_up_at = time.monotonic() + options.seconds
    for at_once in steps(options.first, options.at_once):
        progress("buyers at once", at_once, options.at_once)
        levels.append(await buyers.run_level(at_once, options.level_s))
        if buyers.is_over or time.monotonic() > give_up_at or (at_once > 4 and is_saturated(levels)):
            break
    return levels


def steps(first: int, most: int) -> Iterator[int]:
    at_once = first
    while at_once < most:
        yield at_once
        at_once *= 2
    yield most


async def _clear(stage: Stage | None, buyers: Buyers) -> list[str]:
    left = []
    if stage is not None:
        left += await stage.clear()
    elif bookings := await buyers.cancel_bookings():
        left.append(f"{bookings} bookings")
    if accounts := await buyers.erase():
        left.append(f"{accounts} test accounts (rehearsal-…@rehearsal.invalid)")
    return left


def check_address(url: str, is_test_installation: bool) -> None:
    """A rehearsal is load: only against this machine, unless the operator says that it is a test."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OperatorError(f"--url {url}: use for example http://127.0.0.1:8000")
    if not is_test_installation and not _is_loopback(parts.hostname):
        raise OperatorError(
            f"{parts.hostname} is another machine: add --yes-this-is-a-test-installation if it is one"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
