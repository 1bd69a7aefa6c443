"""Stolen passwords, floods of accounts and of mails: what gets through, with nginx in front and without.

With `--full` some thousands of requests meet the limits that a house has unless it sets others. Without it
there are fewer of both: each wrong password costs a hash.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx2
import pytest

from holdfast.accounts import NewAccount
from holdfast.accounts.account import hash_password
from holdfast.app import App, asgi_app
from holdfast.config import Config
from holdfast.web.asgi import Application
from holdfast.web.rate_limits import HOUR_S, MINUTE_S, bucket_key
from tests.conftest import started
from tests.support.floods import Flood, WayIn, new_addresses
from tests.support.nginx_front import Behind, fronted
from tests.support.result_tables import Table
from tests.support.shows import API

FULL = Config()
SMALL = replace(FULL, logins_per_account_hour_max=20, logins_per_address_minute_max=25)
PASSWORD = "correct horse battery staple"
MAILS_MAX = 6  # that prove an address, per hour: notifications/functions.sql
BUSY = 503  # too many passwords wait for their hash
NGINX_BURST, NGINX_PER_MINUTE = 21, 120  # of one address: zone sign_in
WAYS = ("without nginx", "with nginx")


@pytest.fixture(scope="module")
def limits(is_full: bool) -> Config:
    return FULL if is_full else SMALL


@pytest.fixture(scope="module")
async def house(config: Config, limits: Config) -> AsyncIterator[Application]:
    limited = replace(
        limits,
        database_url=config.database_url,
        redis_url=config.redis_url,
        gateway_url=config.gateway_url,
        gateway_secret=config.gateway_secret,
    )
    application = asgi_app(limited)
    async with started(application):
        yield application


@pytest.fixture(scope="module")
async def ways(
    house: Application, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[dict[str, WayIn]]:
    behind = Behind(house)
    async with behind.serving(), fronted(tmp_path_factory.mktemp("nginx"), behind.address) as client:
        urls = (f"http://{behind.address}", str(client.base_url))
        yield {name: WayIn(name, url, behind) for name, url in zip(WAYS, urls, strict=True)}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, ways: dict[str, WayIn]) -> WayIn:
    return ways[request.param]


@pytest.fixture(autouse=True)
async def full_buckets(app: App) -> None:
    """Of the house: each flood begins with what a quiet minute leaves."""
    names = ("login-house", "sign-up-house", "reset-house")
    await app.redis.call("DEL", *map(bucket_key, names))


@pytest.fixture(scope="module")
def table(pytestconfig: pytest.Config) -> Table:
    """Printed when all tests are over."""
    made = Table("floods: what reached the box office and what got through")
    pytestconfig.pluginmanager.register(made, "floods")
    return made


@pytest.fixture
def times(is_full: bool) -> int:
    """How many times the size that the tests have without --full."""
    return 50 if is_full else 1


def note(table: Table, what: str, way: WayIn, flood: Flood, through: int, thing: str) -> None:
    table.note(what, "sent", flood.sent)
    table.note(what, f"{way.name}: reached", flood.reached)
    table.note(what, f"{way.name}: got through", f"{through} {thing}")
    print(f"{what}, {way.name}: {flood.sent} sent, {flood.reached} reached, {through} {thing}")


def check_nginx(way: WayIn, flood: Flood, addresses: int = 1) -> None:
    """Of one address nginx passes on a burst and two per second."""
    if way.name == "with nginx":
        assert flood.reached <= addresses * (NGINX_BURST + flood.took_s * NGINX_PER_MINUTE / 60 + 1)
    else:
        assert flood.reached == flood.sent


async def test_a_list_of_stolen_passwords_from_one_address(
    way: WayIn, table: Table, times: int, limits: Config
) -> None:
    bodies = [{"email": f"{n}@list.example", "password": PASSWORD} for n in range(40 * times)]

    flood = await way.flood("/auth/login", bodies, new_addresses(1))

    note(table, "stolen passwords from 1 address", way, flood, flood.statuses[401], "guesses")
    assert set(flood.statuses) == {401, 429}
    assert flood.statuses[401] <= flood.upper(limits.logins_per_address_minute_max, MINUTE_S)
    assert flood.statuses[401] >= min(limits.logins_per_address_minute_max, NGINX_BURST)
    check_nginx(way, flood)


async def test_one_account_is_guessed_from_many_addresses(
    way: WayIn, table: Table, times: int, limits: Config
) -> None:
    email = f"famous@{way.name.replace(' ', '-')}.example"
    bodies = [{"email": email, "password": f"{PASSWORD} {n}"} for n in range(40 * times)]

    flood = await way.flood("/auth/login", bodies, new_addresses(30))

    note(table, "one account from 30 addresses", way, flood, flood.statuses[401], "guesses")
    assert flood.statuses[401] >= limits.logins_per_account_hour_max
    assert flood.statuses[401] <= flood.upper(limits.logins_per_account_hour_max, HOUR_S)
    check_nginx(way, flood, 30)


async def test_people_sign_in_during_a_flood_from_a_botnet(
    way: WayIn, table: Table, times: int, limits: Config, app: App
) -> None:
    """At the addresses where they were before, whatever strangers have used up."""
    addresses, homes = new_addresses(100), new_addresses(10)
    bodies = [{"email": f"{n}@botnet.example", "password": PASSWORD} for n in range(40 * times)]
    hashed = hash_password(PASSWORD)
    people = [f"{home}@people.example" for home in homes]
    await app.accounts.add_many([NewAccount(one, "Person", password_hash=hashed) for one in people])

    async def sign_in() -> list[int]:
        answers = await asyncio.gather(
            *(
                way.send("/auth/login", [{"email": person, "password": PASSWORD}], home)
                for person, home in zip(people, homes, strict=True)
            )
        )
        return [status for some in answers for status in some]

    assert await sign_in() == [200] * len(people)
    attack = asyncio.create_task(way.flood("/auth/login", bodies, addresses))
    found = [status for _ in range(3) for status in await sign_in()]
    flood = await attack
    flood = replace(flood, reached=flood.reached - len(found))

    note(table, "stolen passwords from 100 addresses", way, flood, flood.statuses[401], "guesses")
    table.note("people beside them", "sent", len(found))
    table.note("people beside them", f"{way.name}: got through", f"{found.count(200)} sign-ins")
    assert found == [200] * len(found)
    assert flood.statuses[401] <= flood.upper(limits.logins_house_minute_max, MINUTE_S)
    assert set(flood.statuses) <= {401, 429, BUSY}
    check_nginx(way, flood, 100)


async def test_a_flood_of_new_accounts(way: WayIn, table: Table, times: int, limits: Config) -> None:
    bodies = [
        {"email": f"{n}@sign.example", "password": PASSWORD, "name": "Flood"} for n in range(40 * times)
    ]

    flood = await way.flood("/accounts", bodies, new_addresses(1))

    note(table, "sign-ups from 1 address", way, flood, flood.statuses[201], "accounts")
    assert set(flood.statuses) == {201, 429}
    assert flood.statuses[201] <= flood.upper(limits.signups_per_address_hour_max, HOUR_S)
    check_nginx(way, flood)


async def test_a_flood_of_new_accounts_from_many_addresses(
    way: WayIn, table: Table, times: int, limits: Config
) -> None:
    bodies = [
        {"email": f"{n}@many.example", "password": PASSWORD, "name": "Flood"} for n in range(20 * times)
    ]

    flood = await way.flood("/accounts", bodies, new_addresses(50))

    note(table, "sign-ups from 50 addresses", way, flood, flood.statuses[201], "accounts")
    assert set(flood.statuses) <= {201, 429, BUSY}
    assert flood.statuses[201] <= flood.upper(limits.signups_house_minute_max, MINUTE_S)
    check_nginx(way, flood, 50)


async def mails_to(app: App, victims: str) -> int:
    """The most that one of these addresses gets."""
    most = "SELECT count(*) FROM notice WHERE address LIKE $1 GROUP BY address ORDER BY 1 DESC LIMIT 1"
    return await app.postgres.fetchval(most, f"%@{victims}") or 0


async def test_a_flood_of_mails_to_one_address(
    way: WayIn, table: Table, times: int, limits: Config, app: App
) -> None:
    """By every way that writes to a stranger, from many addresses at once."""
    house = f"{way.name.replace(' ', '-')}.bombed.example"
    victim = {"email": f"victim@{house}"}
    new = victim | {"password": PASSWORD, "name": "Flood"}
    floods = await asyncio.gather(
        way.flood("/auth/forgot-password", [victim] * 20 * times, new_addresses(15)),
        way.flood("/auth/sign-in-link", [victim] * 20 * times, new_addresses(15)),
        way.flood("/accounts", [new] * 20 * times, new_addresses(15)),
    )

    mails, sent = await mails_to(app, house), sum(flood.sent for flood in floods)
    whole = Flood(sent, sum(flood.reached for flood in floods), floods[0].statuses, floods[0].took_s)
    note(table, "mails to one address", way, whole, mails, "mails")
    assert 0 < mails <= MAILS_MAX
    links = floods[0].statuses[204] + floods[1].statuses[204]
    assert links <= floods[0].upper(limits.resets_per_account_hour_max, HOUR_S)
    for flood in floods:
        check_nginx(way, flood, 15)


async def test_a_flood_of_mails_to_many_addresses(
    way: WayIn, table: Table, times: int, limits: Config
) -> None:
    house = f"{way.name.replace(' ', '-')}.many.example"
    bodies = [{"email": f"victim{n}@{house}"} for n in range(40 * times)]

    flood = await way.flood("/auth/forgot-password", bodies, new_addresses(1))

    note(table, "resets from 1 address", way, flood, flood.statuses[204], "mails")
    assert set(flood.statuses) == {204, 429}
    assert flood.statuses[204] >= limits.resets_per_address_hour_max
    assert flood.statuses[204] <= flood.upper(limits.resets_per_address_hour_max, HOUR_S)
    check_nginx(way, flood)


async def test_a_flood_of_mails_from_many_addresses(
    way: WayIn, table: Table, times: int, limits: Config
) -> None:
    house = f"{way.name.replace(' ', '-')}.botnet.example"
    bodies = [{"email": f"victim{n}@{house}"} for n in range(20 * times)]

    flood = await way.flood("/auth/forgot-password", bodies, new_addresses(50))

    note(table, "resets from 50 addresses", way, flood, flood.statuses[204], "mails")
    assert set(flood.statuses) <= {204, 429}
    assert flood.statuses[204] <= flood.upper(limits.resets_house_minute_max, MINUTE_S)
    check_nginx(way, flood, 50)


@asynccontextmanager
async def client_at(house: Application, address: str) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(house, client=(address, 1))
    async with httpx2.AsyncClient(transport=transport, base_url="http://box.office") as client:
        yield client


async def test_the_response_says_what_is_left_and_how_long_to_wait(house: Application) -> None:
    body = {"email": "left@limits.example", "password": PASSWORD}
    async with client_at(house, "198.18.1.1") as client:
        answers = [await client.post(f"{API}/auth/login", json=body) for _ in range(11)]
        unlimited = await client.get(f"{API}/cities")

    assert answers[0].headers["ratelimit-policy"] == '"login";q=10;w=60'
    assert [one.headers["ratelimit"].split(";")[1] for one in answers[:3]] == ["r=9", "r=8", "r=7"]
    assert answers[-1].status_code == 429
    assert answers[-1].headers["ratelimit"].startswith('"login";r=0;t=')
    assert int(answers[-1].headers["retry-after"]) > 0
    assert "ratelimit" not in unlimited.headers
