"""The application of a house with pods, as tests of one ledger use it.

    test ──► SpreadApp ─┬─ people, catalogue, search ────────────────────► home
                        ├─ bookings, payments, tickets … ──(which show?)──► its pod
                        └─ postgres ──(which tables? which show?)─────────► home or a pod

A call is about the show that is among its arguments; if none is, about the newest one. Before every call the
house settles: what home has committed has arrived in the pods.
"""

import asyncio
import inspect
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import fields, is_dataclass
from functools import cached_property, reduce
from typing import Any

import msgspec

from holdfast.app import App
from holdfast.app_people import Persons
from holdfast.bookings import NoSuchBooking, from_public_id
from holdfast.engines.postgres import Postgres, Transaction
from tests.support.spread_ledgers import SpreadLedgers
from tests.support.spread_sql import Place, place_of

# Of the home database, whatever show a call names.
AT_HOME = {*Persons._fields, "config", "router", "pod", "home", "puzzles", "pages", "replica", "search"}
AT_HOME |= {"passes"}
SEARCH = "search_index"  # at home, too; it reads pods, and must know where the shows are
# Calls that name no show are about the home database, not about the newest show.
CATALOGUE = {"catalogue", "audit_log"}
# What organisers decide about the house, in stores of the sale.
HOUSE_CALLS = {
    *("tickets.revoke_keys", "tickets.rotate_key", "tickets.keys", "tickets.newest_key"),
    *("webhooks_out.add", "webhooks_out.endpoints", "webhooks_out.endpoint", "webhooks_out.change"),
    *("webhooks_out.change_secret", "webhooks_out.remove"),
    *("acceptance.accept_by_link", "acceptance.accept_in_browser"),
}
LONG_NUMBER = re.compile(rb"\d{5,}")
PARTS_MAX = 400  # of a call, that are looked at


class SpreadApp:
    def __init__(self, app: App, house: SpreadLedgers) -> None:
        self.ledgers = house
        self.real = app

    @property
    def catalogue_home(self) -> App:
        return self.real

    @cached_property
    def postgres(self) -> "SpreadPostgres":
        return SpreadPostgres(self)

    def room_editor(self, scope: Any) -> Any:
        return App.room_editor(self, scope)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.real, name)
        if name == SEARCH:
            return Led(self, (name,), "", always=True)
        if name in AT_HOME or name not in App.__slots__:
            return value
        return Led(self, (name,), "" if name in CATALOGUE else None)

    async def settle(self) -> None:
        await self.ledgers.settle(self.real.router.directory)

    def choose(self, *about: Any, otherwise: str | None = None) -> App:
        """By a show in these arguments."""
        show = find_show(about, self.ledgers.shows)
        if show is not None:
            name = self.ledgers.shows[show]
        else:
            name = self.ledgers.selling if otherwise is None else otherwise
        if self.ledgers.shows:
            self.ledgers.used.add(name)
        return self.real.router.by_name[name]


class Led:
    """A store or service: each call goes to that of one database; `otherwise`, if it names no show.

    `always`: all of them to that of home.
    """

    def __init__(
        self, app: SpreadApp, path: tuple[str, ...], otherwise: str | None, always: bool = False
    ) -> None:
        self._app, self._path, self._otherwise, self._always = app, path, otherwise, always

    def __getattr__(self, name: str) -> Any:
        sample = getattr(self._of(self._app.real), name)
        if inspect.iscoroutinefunction(sample):
            return self._settled(name)
        if callable(sample) and not inspect.isclass(sample) and not is_store(sample):
            return lambda *args, **more: getattr(self._choose(name, args, more), name)(*args, **more)
        if is_store(sample):
            return Led(self._app, (*self._path, name), self._otherwise, self._always)
        return getattr(self._choose(name, (), {}), name)

    def __call__(self, *args: Any, **more: Any) -> Any:
        return self._choose("", args, more)(*args, **more)

    def _settled(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **more: Any) -> Any:
            await self._app.settle()
            return await getattr(self._choose(name, args, more), name)(*args, **more)

        return call

    def _choose(self, name: str, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if self._always or ".".join((*self._path, name)) in HOUSE_CALLS:
            return self._of(self._app.real)
        return self._of(self._app.choose(args, more, otherwise=self._otherwise))

    def _of(self, app: App) -> Any:
        return reduce(getattr, self._path, app)


class SpreadPostgres(Postgres):
    """Each statement goes to the database of its tables."""

    def __init__(self, app: SpreadApp) -> None:
        real = app.real.postgres
        super().__init__(real._url, pool_max=real._pool_max, timeout_s=real._timeout_s)
        self._app = app

    async def open(self) -> None:
        await self._app.real.postgres.open()

    async def close(self) -> None:
        """The application closes its own."""

    def choose(self, sql: str, args: Iterable[Any]) -> Postgres:
        place = place_of(sql)
        if place is Place.HOME:
            return self._app.real.postgres
        return self._app.choose(args, sql.encode()).postgres

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Transaction]:
        async with self._lent(lambda postgres: postgres.lease()) as lent:
            yield lent

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._lent(lambda postgres: postgres.transaction()) as lent:
            yield lent

    @asynccontextmanager
    async def fresh_plans(self) -> AsyncIterator[Transaction]:
        async with self._lent(lambda postgres: postgres.fresh_plans()) as lent:
            yield lent

    @asynccontextmanager
    async def _lent(self, begin: Callable[[Postgres], Any]) -> AsyncIterator[Any]:
        await self._app.settle()
        async with AsyncExitStack() as stack:
            yield LaterConnection(self, begin, stack)

    async def fetch(self, sql: str, *args: object, timeout: float | None = None) -> list[Any]:
        await self._app.settle()
        return await self.choose(sql, args).fetch(sql, *args, timeout=timeout)

    async def fetchrow(self, sql: str, *args: object) -> Any:
        await self._app.settle()
        return await self.choose(sql, args).fetchrow(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        await self._app.settle()
        return await self.choose(sql, args).fetchval(sql, *args)

    async def execute(self, sql: str, *args: object) -> str:
        await self._app.settle()
        return await self.choose(sql, args).execute(sql, *args)

    async def executemany(self, sql: str, rows: list[tuple[object, ...]]) -> None:
        await self._app.settle()
        await self.choose(sql, rows).executemany(sql, rows)


class LaterConnection:
    """A connection, or a transaction, of the database of its first statement."""

    def __init__(
        self, postgres: SpreadPostgres, begin: Callable[[Postgres], Any], stack: AsyncExitStack
    ) -> None:
        self._postgres, self._begin, self._stack = postgres, begin, stack
        self._opening = asyncio.Lock()
        self._real: Any = None

    def __getattr__(self, name: str) -> Any:
        async def call(sql: str, *args: Any, **more: Any) -> Any:
            return await getattr(await self._open(sql, args), name)(sql, *args, **more)

        return call

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """Within this one; or of a connection, which has done nothing yet."""
        real = await self._open("", ()) if self._real is None else self._real
        async with real.transaction():
            yield

    async def _open(self, sql: str, args: Iterable[Any]) -> Any:
        async with self._opening:
            if self._real is None:
                chosen = self._postgres.choose(sql, args)
                self._real = await self._stack.enter_async_context(self._begin(chosen))
            return self._real


def is_store(value: Any) -> bool:
    """An object of the product that does something, not a value."""
    ours = type(value).__module__.startswith("holdfast.")
    is_value = isinstance(value, msgspec.Struct | tuple | str | int) or is_dataclass(value)
    return ours and not is_value and not inspect.isroutine(value)


def find_show(about: Any, shows: Mapping[int, str]) -> int | None:
    """The first of these shows that is mentioned: by its number, by a booking of it, or in a text."""
    waiting = deque([about])
    for _ in range(PARTS_MAX):
        if not waiting:
            break
        one = waiting.popleft()
        if isinstance(one, int):
            if one in shows:
                return one
        elif isinstance(one, str | bytes):
            if (found := _in_text(one, shows)) is not None:
                return found
        else:
            waiting.extend(_parts_of(one))
    return None


def _parts_of(about: Any) -> Iterable[Any]:
    if isinstance(about, Mapping):
        return [*about.keys(), *about.values()]
    if isinstance(about, list | tuple | set | frozenset):
        return about
    for name in ("show_id", "show"):
        if hasattr(about, name):
            return [getattr(about, name)]
    if isinstance(about, msgspec.Struct):
        return [getattr(about, name) for name in about.__struct_fields__]
    if is_dataclass(about):
        return [getattr(about, field.name) for field in fields(about)]
    return []


def _in_text(text: str | bytes, shows: Mapping[int, str]) -> int | None:
    if isinstance(text, str):
        try:
            found = from_public_id(text.partition("-")[0])[0]
        except NoSuchBooking:
            text = text.encode(errors="replace")
        else:
            return found if found in shows else None
    return next((int(number) for number in LONG_NUMBER.findall(text) if int(number) in shows), None)
