"""Composition of the subjects about people: accounts, sessions, organisations, the house itself."""

from typing import NamedTuple

from holdfast.accounts import (
    AccountAdmin,
    Accounts,
    MailTokens,
    Passkeys,
    People,
    SecondFactors,
    Sessions,
)
from holdfast.config import Config
from holdfast.engines.postgres import Postgres
from holdfast.engines.redis import Redis
from holdfast.house import House
from holdfast.legal import Legal
from holdfast.notifications import NotificationStore
from holdfast.oidc import Identities
from holdfast.oidc.client import ProviderClient
from holdfast.organisations import ApiKeys, Organisations
from holdfast.privacy import Databases, Erasure, PersonalData


class Persons(NamedTuple):
    """Fields of App: subjects of the home database, which the applications of all pods share."""

    accounts: Accounts
    organisations: Organisations
    api_keys: ApiKeys
    house: House
    legal: Legal
    sessions: Sessions
    mail_tokens: MailTokens
    people: People
    second_factors: SecondFactors
    identities: Identities
    passkeys: Passkeys
    account_admin: AccountAdmin
    personal_data: PersonalData
    erasure: Erasure


def build_people(
    config: Config,
    postgres: Postgres,
    limits_redis: Redis,
    notifications: NotificationStore,
    pods: Databases = dict,
) -> Persons:
    accounts, tokens = Accounts(postgres, limits_redis, config), MailTokens(postgres)
    organisations = Organisations(postgres, accounts, config)
    people = People(postgres, accounts, tokens, notifications)
    factors = SecondFactors(postgres, accounts, notifications, config)
    admin = AccountAdmin(postgres, accounts, tokens)
    return Persons(
        accounts=accounts,
        api_keys=ApiKeys(postgres, accounts.limits),
        organisations=organisations,
        house=House(postgres, organisations),
        legal=Legal(postgres, batch_max=config.batch_max, waiting_max=config.waiting_max),
        sessions=Sessions(postgres, accounts, config),
        mail_tokens=tokens,
        people=people,
        identities=Identities(postgres, people, ProviderClient(config)),
        second_factors=factors,
        passkeys=Passkeys(postgres, accounts, factors, config),
        account_admin=admin,
        personal_data=PersonalData(postgres, people, factors, pods),
        erasure=Erasure(postgres, accounts, admin, pods),
    )
