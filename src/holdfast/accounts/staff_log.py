"""What the audit log says about accounts: sign-ins of staff, roles, and the keys that sign tokens."""

from holdfast.engines.postgres import Queryable
from holdfast.web.audit_log import AuditEntry, find_origin, find_origin_of, record
from holdfast.web.caller import Role


async def record_sign_in(tx: Queryable, account_id: int, role: str) -> None:
    """In the house's log. Only of staff: buyers sign in by the thousand, and change nothing of others."""
    if role != Role.FAN:
        entry = AuditEntry(
            action="account.signed_in",
            subject=("account", account_id),
            after={"role": role},
            origin=find_origin_of(account_id),
        )
        await record(tx, entry)


async def record_role(tx: Queryable, account_id: int, before: str, after: str) -> None:
    entry = AuditEntry(
        action="account.role_changed",
        subject=("account", account_id),
        before={"role": before},
        after={"role": after},
        person_id=account_id,
    )
    await record(tx, entry)


async def record_account(tx: Queryable, action: str, account_id: int) -> None:
    """What an administrator did with an account: account.added, banned, unbanned, reset, erased."""
    await record(tx, AuditEntry(action=action, subject=("account", account_id), person_id=account_id))


async def record_own_account(tx: Queryable, action: str, account_id: int) -> None:
    """What a person changed in their own account, or an administrator for them: account.totp_added, …"""
    origin = find_origin()
    if origin.actor_id is None and origin.via != "command":  # in the middle of a sign-in
        origin = find_origin_of(account_id)
    entry = AuditEntry(action=action, subject=("account", account_id), person_id=account_id, origin=origin)
    await record(tx, entry)


async def record_key(tx: Queryable, *, is_revoked: bool) -> None:
    action = "signing_keys.revoked" if is_revoked else "signing_key.rotated"
    await record(tx, AuditEntry(action=action, subject=("signing_key", "new")))
