"""Refusals about organisations and their members. No I/O.

Refusal
├── NoSuchMember        404  of this organisation
├── NoSuchInvitation    404  unknown, used, withdrawn or expired
├── LastOwner           409  an organisation always has an owner
├── AlreadyAMember      409
├── RightsTooHigh       403  only who has a right can give it or take it away
├── MembersMax          409
├── NoSuchKey           404  of this organisation
├── KeysMax             409  per organisation
└── InvitationsMax      429  per organisation and per address, in a day
"""

from holdfast.errors import Refusal


class NoSuchMember(Refusal):
    """The account is not a member of this organisation."""

    code, status, title = "no_such_member", 404, "Not a member"


class NoSuchInvitation(Refusal):
    """The invitation does not exist, was used or withdrawn, or has expired. Ask for a new one."""

    code, status, title = "no_such_invitation", 404, "Invitation no longer valid"


class LastOwner(Refusal):
    """This is the only owner, and an organisation always has one. Make another member the owner first."""

    code, status, title = "last_owner", 409, "An organisation needs an owner"


class AlreadyAMember(Refusal):
    """This person is a member already. Change their rights instead."""

    code, status, title = "already_a_member", 409, "Already a member"


class RightsTooHigh(Refusal):
    """You can give and take away only rights that you have yourself; `missing` lists the others."""

    code, status, title = "rights_too_high", 403, "You don't have these rights"


class MembersMax(Refusal):
    """The organisation has `limit` members, which is the most. Remove one first."""

    code, status, title = "members_max", 409, "Too many members"


class InvitationsMax(Refusal):
    """Too many invitations in a day: of this organisation, or to this address. Try again tomorrow."""

    code, status, title = "invitations_max", 429, "Too many invitations"


class NoSuchKey(Refusal):
    """The organisation has no such API key. It may have been revoked."""

    code, status, title = "no_such_key", 404, "No such API key"


class KeysMax(Refusal):
    """The organisation has `limit` API keys, which is the most. Revoke one that is not used."""

    code, status, title = "keys_max", 409, "Too many API keys"
