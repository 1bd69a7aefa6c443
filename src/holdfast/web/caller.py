"""Who makes a request, and what for: account, role, organisation and rights. No I/O."""

from dataclasses import dataclass
from enum import StrEnum

from holdfast.errors import NotAllowed, OrganisationNeeded

KEY_PREFIX = "hfk_"  # of API keys; secret scanners look for it


class Role(StrEnum):
    FAN = "fan"  # browses, holds, books
    ORGANISER = "organiser"  # works for an organisation; its rights there decide what it may do
    GATE = "gate"  # checks tickets at the door
    ADMIN = "admin"  # may everything


class Right(StrEnum):
    """What a member may do for an organisation. Every route of organisers declares the one it needs."""

    MEMBER = "member"  # every member has it
    BOOKINGS = "bookings"  # sees buyers and attendees; who sells at the counter or refunds has it
    CATALOGUE = "catalogue"  # venues, halls, layouts, events, shows, blocks
    PRICES = "prices"  # prices, price rules and terms
    COUNTER = "counter"  # sells at the counter
    REFUND = "refund"
    MONEY = "money"  # sales figures, chargebacks
    DOOR = "door"  # passes, scanning, door settings
    MESSAGES = "messages"  # what buyers are sent
    SETTINGS = "settings"  # members, webhooks, the seller on invoices
    OWNER = "owner"  # includes all others


@dataclass(frozen=True, slots=True)
class Caller:
    """The account and session that an access token names, or an API key."""

    account_id: int
    role: Role
    session_id: int
    is_verified: bool = True  # a mailed link has proved the address of the account
    key_id: int | None = None  # of an API key; the account is then the one that created it

    @property
    def label(self) -> str:
        return f"account {self.account_id}" if self.key_id is None else f"key {self.key_id}"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who changes something, and from where, for the audit log."""

    actor_id: int | None
    via: str  # api, page, command, or an API key: "key 7"
    address: str
    agent: str
    request_id: str = ""

    @property
    def personal(self) -> dict[str, str]:
        given = {"address": self.address, "agent": self.agent, "request_id": self.request_id}
        return {name: value for name, value in given.items() if value}


@dataclass(frozen=True, slots=True)
class Scope:
    """The organisation that a request speaks for, and the caller's rights in it."""

    account_id: int
    is_admin: bool
    organisation_id: int | None = None  # None: an admin, who speaks for the whole house
    rights: frozenset[Right] = frozenset(Right)
    home_id: int | None = None  # where an admin who named no organisation creates; None: in their own
    must_choose: bool = False  # an admin who is in several, and named none

    @property
    def organiser_id(self) -> int | None:
        """The query parameter: None for an admin of the whole house, who sees all."""
        return self.organisation_id

    @property
    def owner_id(self) -> int:
        """The organisation that owns what the caller creates. An account's own one has the account's id."""
        if self.must_choose:
            raise OrganisationNeeded
        return self.organisation_id or self.home_id or self.account_id

    def require(self, right: Right) -> None:
        """For a route that needs more than its declared right, depending on the body."""
        if right not in self.rights:
            raise NotAllowed(needed=right)


def allows(role: Role, needed: Role) -> bool:
    """Whether `role` may use what requires `needed`. FAN means any signed-in account."""
    return role is needed or role is Role.ADMIN or needed is Role.FAN
