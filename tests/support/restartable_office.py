"""A box office of real processes that is stopped and started again, on the same folder and port."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.app import open_app
from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.sandbox import load_or_create_secret
from holdfast.web.caller import Caller, Role
from tests.support.box_office import ACCESS_TTL_S, Office, running
from tests.support.empty_ledger import fill_with_ledger
from tests.support.engine_folder import engine_folder
from tests.support.killable_transport import client_of_killed
from tests.support.shows import Fan


@dataclass(frozen=True)
class Site:
    path: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def up(self) -> AsyncIterator[Office]:
        """`holdfast serve` until the block ends; then it is stopped."""
        data = self.path / "data"
        await fill_with_ledger(data)
        words = ("serve", "--port", str(self.port), "--workers", "2", "--data", str(data), "--json")
        async with running(self.path / "serve.log", words, {}) as facts:
            folder = DataFolder(data)
            engines = folder.running()
            assert engines is not None
            config = Config(
                database_url=engines.database_url,
                redis_url=engines.redis_url,
                gateway_url=(folder.run / "sandbox.url").read_text(),
                gateway_secret=load_or_create_secret(folder.path / "sandbox"),
                access_ttl_s=ACCESS_TTL_S,
            )
            async with open_app(config) as app, client_of_killed(self.url) as api:
                yield Office(folder, facts["url"], app, api)


@contextmanager
def site() -> Iterator[Site]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with engine_folder("holdfast-site-") as path:
        yield Site(path, port)


async def an_admin(office: Office) -> Fan:
    (fan,) = await office.fans(1)
    return Fan(
        fan.account_id, office.app.accounts.access_token(Caller(fan.account_id, Role.ADMIN, 1)), office.api
    )
