"""Which account belongs to a person at a provider: issuer and subject are the identity, never the address.

identity known ───────────────────────────────► its account
connecting, signed in ────────────────────────► that account
address not proved by the provider ───────────► AddressNotProved
address has an account here ──────────────────► None: sign in to it, then connect
otherwise ────────────────────────────────────► a new account with a proved address
"""

from dataclasses import dataclass
from datetime import datetime

from holdfast.accounts import Account, People
from holdfast.engines.postgres import Postgres, Queries
from holdfast.oidc.client import ProviderClient
from holdfast.oidc.errors import AddressNotProved, IdentityTaken
from holdfast.oidc.provider import ProviderClaims

Q = Queries("holdfast.oidc")
IDENTITIES_MAX = 20  # listed of an account


@dataclass(frozen=True, slots=True)
class LinkedIdentity:
    issuer: str
    subject: str
    email: str  # as the provider has it
    linked_at: datetime
    last_used_at: datetime


class Identities:
    def __init__(self, postgres: Postgres, people: People, client: ProviderClient) -> None:
        self._postgres = postgres
        self._people = people
        self.client = client

    async def sign_in(self, claims: ProviderClaims, locale: str) -> Account | None:
        """The account of this identity, made if the address is new here.

        None: the address has an account. Only who signs in to that account can connect the service: a
        provider that vouches for an address has not seen our account's password.
        """
        known = await self._postgres.fetchval(Q.use, claims.iss, claims.sub)
        if known is not None:
            return await self._people.account(known)
        email = claims.proved_email
        if email is None:
            raise AddressNotProved
        async with self._postgres.transaction() as tx:
            account_id = await self._people.add_proved(
                tx, email=email, name=claims.display_name, locale=locale
            )
            if account_id is None:
                return None
            await tx.execute(Q.link, claims.iss, claims.sub, account_id, email)
        return await self._people.account(account_id)

    async def link(self, claims: ProviderClaims, account_id: int) -> None:
        """Connect the identity to an account that is signed in; again is allowed."""
        await self._postgres.execute(Q.link, claims.iss, claims.sub, account_id, claims.email)
        if await self._postgres.fetchval(Q.owner, claims.iss, claims.sub) != account_id:
            raise IdentityTaken

    async def list(self, account_id: int) -> list[LinkedIdentity]:
        rows = await self._postgres.fetch(Q.list, account_id, IDENTITIES_MAX)
        return [LinkedIdentity(*row) for row in rows]

    async def unlink(self, account_id: int, issuer: str, subject: str) -> None:
        """A mailed link still signs in. Again is allowed."""
        await self._postgres.execute(Q.unlink, account_id, issuer, subject)
