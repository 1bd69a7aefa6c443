"""Who somebody is to us: an account, its role, and the caller a token speaks for. No I/O."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    FAN = "fan"  # browses, holds, books
    ORGANISER = "organiser"  # makes events and shows of their own
    GATE = "gate"  # checks tickets at the door
    ADMIN = "admin"  # may everything


@dataclass(frozen=True, slots=True)
class Account:
    account_id: int
    email: str
    name: str
    role: Role
    version: int  # grows when every token of the account must die: a new role, a ban
    created_at: datetime


@dataclass(frozen=True, slots=True)
class NewAccount:
    """An account to be added by the program itself. Without a password hash nobody can log in to it."""

    email: str
    name: str
    role: Role = Role.FAN
    password_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking, as far as the access token says."""

    account_id: int
    role: Role
    session_id: int


@dataclass(frozen=True, slots=True)
class SignedIn:
    """What a person gets for the right password, or for a refresh token."""

    account: Account
    access_token: str
    refresh_token: str


def allows(role: Role, needed: Role) -> bool:
    """Whether `role` may use what is meant for `needed`. FAN means anybody who is signed in."""
    return role is needed or role is Role.ADMIN or needed is Role.FAN


def normal_email(email: str) -> str:
    """One spelling an address: Ann@Example.org and ann@example.org are one person to us.

    Addresses are ASCII (the form refuses the rest), so lower() is all there is, and no look-alike letter
    can make a twin of somebody's account.
    """
    return email.strip().lower()
