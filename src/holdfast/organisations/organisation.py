"""Memberships and their rights: which organisation a request speaks for, who may change whom. No I/O.

a member of one organisation            speaks for it
of several                              names one: Holdfast-Organisation, or in the path
an admin who names one                  speaks for it, with all rights
an admin who names none                 speaks for the whole house
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from holdfast.accounts import Email
from holdfast.errors import NotAllowed, NotAMember, OrganisationNeeded, SecondFactorNeeded
from holdfast.organisations.errors import RightsTooHigh
from holdfast.web.caller import Caller, Right, Role, Scope

EVERY_RIGHT = frozenset(Right)
IMPLIED = (Right.MEMBER, Right.BOOKINGS)  # by a membership, and by other rights
GRANTABLE = tuple(right for right in Right if right not in (*IMPLIED, Right.OWNER))

OrganisationName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=120,
        pattern=r"^[^\s\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*$(?!\n)",
        examples=["Lotus Concerts"],
    ),
]
GrantableRight = Literal["catalogue", "prices", "counter", "refund", "money", "door", "messages", "settings"]
MemberRight = Literal[GrantableRight, "owner"]
Rights = Annotated[list[GrantableRight], Meta(max_length=len(GRANTABLE), examples=[["catalogue", "door"]])]


@dataclass(frozen=True, slots=True)
class Membership:
    organisation_id: int
    rights: frozenset[Right]  # with those that are implied
    is_held_back: bool = False  # until the member has a second factor

    @property
    def is_owner(self) -> bool:
        return Right.OWNER in self.rights


def parse_rights(stored: Collection[str]) -> frozenset[Right]:
    """With those that are implied; `owner` includes every right."""
    rights = frozenset(Right(right) for right in stored) | {Right.MEMBER}
    if Right.OWNER in rights:
        return EVERY_RIGHT
    return rights | {Right.BOOKINGS} if rights & {Right.COUNTER, Right.REFUND} else rights


def list_grantable(rights: Collection[Right]) -> list[str]:
    """Those that are granted one by one, in the order of Right."""
    return [right.value for right in GRANTABLE if right in rights]


def choose_scope(
    caller: Caller, right: Right, named: str | None, memberships: Mapping[int, Membership]
) -> Scope:
    """What the caller may do in the organisation that the request names, or in their only one.

    For an admin, the caller of this function has checked that the named organisation exists.
    """
    is_admin = caller.role is Role.ADMIN
    if named is None and is_admin:
        return _house_scope(caller.account_id, memberships)
    if named is None and len(memberships) > 1:
        raise OrganisationNeeded(organisations=sorted(memberships))
    if named is None and not memberships:
        raise NotAllowed(needed=right)
    organisation_id = next(iter(memberships)) if named is None else parse_id(named)
    if is_admin:
        return Scope(caller.account_id, True, organisation_id)
    membership = memberships.get(organisation_id)
    if membership is None:
        raise NotAMember
    if right not in membership.rights:
        raise NotAllowed(needed=right)
    if membership.is_held_back:
        raise SecondFactorNeeded
    return Scope(caller.account_id, False, organisation_id, membership.rights)


def _house_scope(account_id: int, memberships: Mapping[int, Membership]) -> Scope:
    home_id = next(iter(memberships)) if len(memberships) == 1 else None
    return Scope(account_id, True, home_id=home_id, must_choose=len(memberships) > 1)


def parse_id(named: str) -> int:
    """NotAMember for what cannot be an id: a client learns nothing about ids that are not its own."""
    if not (named.isascii() and named.isdigit() and len(named) <= 18):
        raise NotAMember
    return int(named)


def refuse_higher_rights(scope: Scope, before: Collection[Right], after: Collection[Right]) -> None:
    """A member gives and takes away only rights of their own, so that no one can raise their own."""
    if missing := (set(before) ^ set(after)) - scope.rights:
        raise RightsTooHigh(missing=sorted(missing))


# ── for requests and responses ────────────────────────────────────────────────────────


class NewOrganisation(Struct, forbid_unknown_fields=True, frozen=True):
    name: OrganisationName


class OrganisationPage(Struct, frozen=True, kw_only=True):
    organisation_id: int
    name: str
    created_at: datetime
    second_factor_required: bool  # of everyone who works for it


class SecondFactorRule(Struct, forbid_unknown_fields=True, frozen=True):
    required: bool


class OrganisationList(Struct, frozen=True):
    total: int
    organisations: list[OrganisationPage]


class MyOrganisation(Struct, frozen=True, kw_only=True):
    organisation_id: int
    name: str
    is_owner: bool
    rights: list[str]  # an owner has all


class MyOrganisations(Struct, frozen=True):
    organisations: list[MyOrganisation]


class MemberPage(Struct, frozen=True, kw_only=True):
    account_id: int
    name: str
    email: str
    is_owner: bool
    rights: list[str]
    joined_at: datetime


class MemberList(Struct, frozen=True):
    members: list[MemberPage]


class RightsBody(Struct, forbid_unknown_fields=True, frozen=True):
    """`owner` includes all other rights. An organisation may have several owners."""

    rights: Annotated[
        list[MemberRight], Meta(max_length=len(GRANTABLE) + 1, examples=[["catalogue", "door"]])
    ]


class NewOwner(Struct, forbid_unknown_fields=True, frozen=True):
    account_id: Annotated[int, Meta(ge=1, le=2**63 - 1)]


class NewInvitation(Struct, forbid_unknown_fields=True, frozen=True):
    email: Email
    rights: Rights


class InvitationPage(Struct, frozen=True, kw_only=True):
    invitation_id: int
    email: str
    rights: list[str]
    created_at: datetime
    expires_at: datetime


class InvitationList(Struct, frozen=True):
    invitations: list[InvitationPage]


class TokenBody(Struct, forbid_unknown_fields=True, frozen=True):
    token: Annotated[str, Meta(min_length=1, max_length=128)]  # of the link in the mail


class OrganisationsQuery(Struct, forbid_unknown_fields=True, frozen=True):
    q: Annotated[str, Meta(max_length=120)] = ""  # the beginning of a word of the name
    page: Annotated[int, Meta(ge=1, le=10_000)] = 1
    size: Annotated[int, Meta(ge=1, le=200)] = 50
