"""Organisations: who works for one, with which rights, and how people join (R31, R32)."""

from holdfast.organisations.api_key import KeyRotation, NewKey
from holdfast.organisations.api_keys import ApiKeys
from holdfast.organisations.errors import (
    AlreadyAMember,
    InvitationsMax,
    LastOwner,
    MembersMax,
    NoSuchInvitation,
    NoSuchMember,
    RightsTooHigh,
)
from holdfast.organisations.invitations import InvitationMails, Invitations, OpenInvitation
from holdfast.organisations.organisation import (
    GRANTABLE,
    MemberPage,
    Membership,
    MyOrganisation,
    NewInvitation,
    NewOrganisation,
    OrganisationName,
    OrganisationPage,
    OrganisationsQuery,
    list_grantable,
)
from holdfast.organisations.store import Organisations

__all__ = [
    "GRANTABLE",
    "AlreadyAMember",
    "ApiKeys",
    "InvitationMails",
    "Invitations",
    "InvitationsMax",
    "KeyRotation",
    "LastOwner",
    "MemberPage",
    "MembersMax",
    "Membership",
    "MyOrganisation",
    "NewInvitation",
    "NewKey",
    "NewOrganisation",
    "NoSuchInvitation",
    "NoSuchMember",
    "OpenInvitation",
    "OrganisationName",
    "OrganisationPage",
    "Organisations",
    "OrganisationsQuery",
    "RightsTooHigh",
    "list_grantable",
]
