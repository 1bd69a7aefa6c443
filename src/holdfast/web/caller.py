"""Who makes a request: the role and the account that an access token names. No I/O."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    FAN = "fan"  # browses, holds, books
    ORGANISER = "organiser"  # makes events and shows of their own
    GATE = "gate"  # checks tickets at the door
    ADMIN = "admin"  # may everything


@dataclass(frozen=True, slots=True)
class Caller:
    """The account and session that an access token names."""

    account_id: int
    role: Role
    session_id: int


def allows(role: Role, needed: Role) -> bool:
    """Whether `role` may use what requires `needed`. FAN means any signed-in account."""
    return role is needed or role is Role.ADMIN or needed is Role.FAN
