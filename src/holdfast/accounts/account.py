"""Accounts, their roles and languages. No I/O."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.web.caller import Role

if TYPE_CHECKING:
    from holdfast.engines.postgres import Row

LANGUAGES = ("en", "de", "hi")  # of messages and pages; the first is the default
WISHES_MAX = 20
WEIGHT = re.compile(r"[01](\.\d{1,3})?")


@dataclass(frozen=True, slots=True)
class Account:
    account_id: int
    email: str
    name: str
    role: Role
    version: int  # grows when every token of the account must die: a new role, a ban
    created_at: datetime
    locale: str = "en"  # the language notices are written in: one of LANGUAGES


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account that the program itself adds. Without a password hash, logging in is impossible."""

    email: str
    name: str
    role: Role = Role.FAN
    password_hash: str | None = None


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a person gets for the right password, or for a refresh token."""

    account: Account
    access_token: str
    refresh_token: str


def build_account(row: "Row") -> Account:
    return Account(
        account_id=row["id"],
        email=row["email"],
        name=row["name"],
        role=Role(row["role"]),
        version=row["version"],
        created_at=row["created_at"],
        locale=row["locale"],
    )


def normal_email(email: str) -> str:
    """One spelling an address: Ann@Example.org and ann@example.org are one person to us.

    Addresses are ASCII (the form refuses the rest), so lower() is all there is, and no look-alike letter
    can create a look-alike of another person's account.
    """
    return email.strip().lower()


def choose_language(accept_language: str | None) -> str:
    """The language of LANGUAGES that an Accept-Language header likes best; `hi-IN` is Hindi."""
    wishes: list[tuple[float, int, str]] = []
    for place, wish in enumerate((accept_language or "").split(",")[:WISHES_MAX]):
        tag, _, quality = wish.partition(";")
        name = tag.strip().split("-")[0].lower()
        share = quality.strip().removeprefix("q=")
        weight = 1.0 if not quality else float(share) if WEIGHT.fullmatch(share) else 0.0
        if name in LANGUAGES and weight > 0:
            wishes.append((-weight, place, name))
    return min(wishes)[2] if wishes else LANGUAGES[0]


def digest(secret: str) -> bytes:
    """The stored form of a secret that the client holds: enough to recognise it."""
    return hashlib.sha256(secret.encode()).digest()
