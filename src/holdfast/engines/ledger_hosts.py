"""Connects to the one among several hosts that is the primary.

    postgresql://holdfast@db1:5432,db2:5432/holdfast     the host that worked last, then the others; each has
                                                         its share of the time-out, and goes last if it fails

asyncpg would try the hosts under one time-out: the first machine that is unplugged would use it up.
"""

import asyncio
import re
from contextlib import suppress
from typing import Any

import asyncpg

# Not urllib.parse: it refuses hosts in brackets beside others.
PARTS = re.compile(r"(?P<begin>\w+://(?:[^/?#]*@)?)(?P<hosts>[^/?#@]*)(?P<rest>.*)")

# Of one host; the next one may be fit. A password that one server rejects may be right on the other.
UNFIT = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class LedgerHosts:
    def __init__(self, url: str, *, role: str = "primary") -> None:
        """`role`: as target_session_attrs, unless the URL has it."""
        self._urls = split_hosts(url)
        is_given = "target_session_attrs=" in url.partition("?")[2]
        self._role: dict[str, Any] = {} if is_given else {"target_session_attrs": role}

    async def connect(self, *, timeout: float, **options: Any) -> asyncpg.Connection:
        failures: list[Exception] = []
        for url in tuple(self._urls):
            try:
                found: asyncpg.Connection = await asyncpg.connect(
                    url, timeout=timeout / len(self._urls), **self._role, **options
                )
            except UNFIT as error:
                self._put_last(url)
                failures.append(error)
            except asyncio.CancelledError:  # the caller's time was up first: its next try begins elsewhere
                self._put_last(url)
                raise
            else:
                return found
        # "It is a standby" says more than "it is down" of a host beside it.
        standbys = (one for one in failures if isinstance(one, asyncpg.TargetServerAttributeNotMatched))
        raise next(standbys, failures[-1])

    def _put_last(self, url: str) -> None:
        self._urls.remove(url)
        self._urls.append(url)


def split_hosts(url: str) -> list[str]:
    """One URL per host. Hosts in the query (?host=) are left to asyncpg."""
    found = PARTS.fullmatch(url)
    if found is None or "," not in found["hosts"]:
        return [url]
    return [f"{found['begin']}{host}{found['rest']}" for host in found["hosts"].split(",")]


class PatientConnection(asyncpg.Connection):
    """Leaves a statement whose time is up, and never cancels it.

    A commit that waits for a synchronous standby and is cancelled is reported as done and becomes visible,
    though no standby has it. Its booking would be shown, its ticket mailed, and both would be lost with the
    primary. Left alone, the commit stays invisible until a standby has it. The server ends other statements
    of a client that left by itself, with `client_connection_check_interval`.
    """

    async def close(self, *, timeout: float | None = None) -> None:
        """No error if the server is silent: the pool closes in the background, where no caller sees one."""
        with suppress(TimeoutError):
            await super().close(timeout=timeout)

    def _cancel_current_command(self, waiter: asyncio.Future[None], *_more: object) -> None:
        # Later: the caller of this function still sets the outcome of the statement.
        asyncio.get_running_loop().call_soon(self._leave, waiter)

    def _leave(self, waiter: asyncio.Future[None]) -> None:
        self.terminate()
        if not waiter.done():
            waiter.set_result(None)
