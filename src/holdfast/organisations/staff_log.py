"""What the audit log of an organisation says about its name, members and invitations."""

from collections.abc import Collection
from typing import Any

from holdfast.engines.postgres import Queryable
from holdfast.web.audit_log import AuditEntry, record


async def record_name(tx: Queryable, organisation_id: int, before: str | None, after: str) -> None:
    """`before` None: it is new."""
    entry = AuditEntry(
        action="organisation.created" if before is None else "organisation.changed",
        subject=("organisation", organisation_id),
        organiser_id=organisation_id,
        name=after,
        before={} if before is None else {"name": before},
        after={"name": after},
    )
    await record(tx, entry)


async def record_second_factor(tx: Queryable, organisation_id: int, required: bool) -> None:
    entry = AuditEntry(
        action="organisation.changed",
        subject=("organisation", organisation_id),
        organiser_id=organisation_id,
        before={"second_factor_required": not required},
        after={"second_factor_required": required},
    )
    await record(tx, entry)


async def record_member(
    tx: Queryable,
    key: tuple[int, int],
    before: Collection[str] | None,
    after: Collection[str] | None,
) -> None:
    """`key`: organisation and account. None: not a member."""
    action = "member.added" if before is None else "member.removed" if after is None else "member.changed"
    entry = AuditEntry(
        action=action,
        subject=("account", key[1]),
        organiser_id=key[0],
        before={} if before is None else {"rights": list(before)},
        after={} if after is None else {"rights": list(after)},
        person_id=key[1],
    )
    await record(tx, entry)


async def record_transfer(tx: Queryable, organisation_id: int, from_id: int, to_id: int) -> None:
    entry = AuditEntry(
        action="organisation.transferred",
        subject=("organisation", organisation_id),
        organiser_id=organisation_id,
        before={"account_id": from_id},
        after={"account_id": to_id},
    )
    await record(tx, entry)


async def record_invitation(
    tx: Queryable, organisation_id: int, invitation_id: int, email: str, rights: Collection[str]
) -> None:
    entry = AuditEntry(
        action="invitation.created",
        subject=("invitation", invitation_id),
        organiser_id=organisation_id,
        after={"rights": list(rights)},
        personal={"email": email},
    )
    await record(tx, entry)


async def record_withdrawn(tx: Queryable, organisation_id: int, invitation_id: int) -> None:
    entry = AuditEntry(
        action="invitation.withdrawn",
        subject=("invitation", invitation_id),
        organiser_id=organisation_id,
    )
    await record(tx, entry)


async def record_api_key(tx: Queryable, action: str, key: tuple[int, int], **more: Any) -> None:
    """`key`: organisation and key."""
    await record(tx, AuditEntry(action=action, subject=("api_key", key[1]), organiser_id=key[0], **more))
