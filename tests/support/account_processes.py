"""People as several processes see them: one ledger, one Redis, memories and a clock of their own."""

import time
from dataclasses import replace

from holdfast.accounts import Accounts, SignedIn
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.errors import TokenInvalid
from tests.support.mailed_links import prove_address

PASSWORD = "correct horse battery"
CONFIG = Config(logins_per_minute_max=0, logins_per_address_minute_max=0, logins_per_account_hour_max=0)
HERE = "192.0.2.1"


class Clock:
    """Both clocks of a process, turned together."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s

    def wall(self) -> float:
        return time.time() + self.ahead_s


class Offices:
    """People as several processes see them: the same engines, memories of their own."""

    def __init__(self, postgres: Postgres, redis: Redis) -> None:
        self.postgres = postgres
        self.clock = Clock()
        self._redis = redis
        self._opened: list[Accounts] = []

    async def open(self, config: Config = CONFIG) -> Accounts:
        people = Accounts(
            self.postgres, self._redis, config, monotonic=self.clock.monotonic, wall=self.clock.wall
        )
        await people.open()
        self._opened.append(people)
        return people

    async def close(self) -> None:
        for people in self._opened:
            await people.close()


async def signed_up(people: Accounts, email: str) -> SignedIn:
    """A new account that has confirmed its address."""
    new = await people.sign_up(email=email, password=PASSWORD, name="Ann")
    await prove_address(people._postgres, new.account.email)
    return replace(new, account=replace(new.account, is_verified=True))


def bearer(signed_in: SignedIn) -> str:
    return f"Bearer {signed_in.access_token}"


def is_let_in(people: Accounts, signed_in: SignedIn) -> bool:
    try:
        return people.verify(bearer(signed_in)).account_id == signed_in.account.account_id
    except TokenInvalid:
        return False
