"""People with a second factor: an authenticator app that the test reads, over the API."""

import secrets
from base64 import b32decode
from dataclasses import dataclass, field
from typing import Any

import httpx2

from holdfast.accounts import NewAccount
from holdfast.accounts.second_factor import PERIOD_S, code_at
from holdfast.app import App
from holdfast.web.caller import Role
from tests.support.shows import API, problem

PASSWORD = "correct horse battery staple"


@dataclass(eq=False)
class Holder:
    """A person with a password and, once it is set up, an authenticator app."""

    app: App
    api: httpx2.AsyncClient
    account_id: int
    email: str
    token: str = ""  # an access token
    secret: str = ""
    codes: list[str] = field(default_factory=list)  # for recovery

    async def code(self, steps: int = 0) -> str:
        """What the app shows now, by the clock of the ledger, or in so many half minutes."""
        now = await self.app.postgres.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
        return code_at(b32decode(self.secret), int(now // PERIOD_S) + steps)

    async def wait_half_a_minute(self) -> None:
        """The ledger's memory of used codes, a while later."""
        await self.app.postgres.execute(
            "UPDATE totp SET last_step = 0 WHERE account_id = $1", self.account_id
        )

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        return await self.api.post(API + path, json=body, headers=self.headers)

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    async def log_in(self, password: str = PASSWORD) -> httpx2.Response:
        return await self.api.post(f"{API}/auth/login", json={"email": self.email, "password": password})

    async def first_step(self) -> str:
        """The token of a sign-in whose second step is open."""
        refused = await self.log_in()
        assert (refused.status_code, problem(refused)["code"]) == (401, "second_factor_required")
        return str(problem(refused)["token"])

    async def second_step(self, token: str, code: str) -> httpx2.Response:
        return await self.api.post(f"{API}/auth/second-factor", json={"token": token, "code": code})

    async def sets_up_the_app(self) -> None:
        begun = await self.post("/me/second-factor/totp", current_password=PASSWORD)
        assert begun.status_code == 200, begun.text
        self.secret = begun.json()["secret"]
        done = await self.post("/me/second-factor/totp/confirm", code=await self.code())
        assert done.status_code == 200, done.text
        self.codes = done.json()["recovery_codes"]
        await self.wait_half_a_minute()


async def a_person(app: App, api: httpx2.AsyncClient, role: Role = Role.FAN) -> Holder:
    """Signed in with a password."""
    email = f"{secrets.token_hex(8)}@example.org"
    hashed = await app.accounts.hashed(PASSWORD)
    (account_id,) = await app.accounts.add_many([NewAccount(email, "Zoë", role, hashed)])
    person = Holder(app, api, account_id, email)
    person.token = (await person.log_in()).json()["access_token"]
    return person


async def a_holder(app: App, api: httpx2.AsyncClient, role: Role = Role.FAN) -> Holder:
    """With an authenticator app."""
    person = await a_person(app, api, role)
    await person.sets_up_the_app()
    return person
