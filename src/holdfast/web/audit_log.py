"""Records what staff change in the audit log, in the transaction of the change.

    handler ─► store: lock, change ─► record(tx, AuditEntry(…)) ─► commit
                                        └ who and from where: the current request, or the command line

`record` comes last in a transaction: it locks the end of the log until the commit. The tables, and how
entries are read and checked, are in audit_log/.
"""

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from holdfast.engines.postgres import Queries, Queryable
from holdfast.engines.request_context import CURRENT_SCOPE
from holdfast.web.caller import Origin

Q = Queries("holdfast.web", "audit_log")
HOUSE = 0  # the chain of what belongs to no organisation
AGENT_CHARACTERS_MAX = 200

_encode = msgspec.json.Encoder(enc_hook=str).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    action: str  # "show.changed"
    subject: tuple[str, int | str]  # ("show", 7)
    organiser_id: int | None = None  # whose log it is in; None: the house's, or that of the show
    show_id: int | None = None  # with it, the entry is in the log of its organiser
    name: str = ""  # of the subject, for readers; never the name of a person
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    personal: Mapping[str, Any] = field(default_factory=dict)  # can be erased; the rest stays for good
    person_id: int | None = None  # the account that `personal` is about
    origin: Origin | None = None  # None: that of the current request


def find_origin() -> Origin:
    """Of the current request; outside of one, of the command line."""
    scope = CURRENT_SCOPE.get()
    if scope is None:
        return Origin(None, "command", socket.gethostname(), _login_name())
    state, client = scope["state"], scope.get("client")
    known = state["caller"] or state.get("session")
    agent = state["headers"].get(b"user-agent", b"").decode("latin-1")
    is_key = state["caller"] is not None and state["caller"].key_id is not None
    return Origin(
        actor_id=known.account_id if known is not None and not is_key else None,
        via=known.label if is_key else "api" if scope["path"].startswith("/api/") else "page",
        address=client[0] if client else "",
        agent=agent[:AGENT_CHARACTERS_MAX],
        request_id=state["request_id"],
    )


def find_origin_of(actor_id: int) -> Origin:
    """Of the current request, by an account that has just signed in."""
    return replace(find_origin(), actor_id=actor_id)


async def record(tx: Queryable, *entries: AuditEntry) -> None:
    """Append entries, each to its own chain. The last statement of a transaction."""
    if entries:
        await tx.execute(Q.append, _encode([_row(entry) for entry in entries]).decode())


async def record_new(tx: Queryable, entry: AuditEntry, created: msgspec.Struct) -> None:
    """Record what was created, with all its fields."""
    await record(tx, replace(entry, after=msgspec.structs.asdict(created)))


async def record_change(
    tx: Queryable, entry: AuditEntry, before: msgspec.Struct | None, after: msgspec.Struct
) -> None:
    """Record the fields that differ; nothing, if none does. `before` None: nothing was set yet."""
    old, new = ({}, msgspec.structs.asdict(after)) if before is None else differing(before, after)
    if old or new:
        await record(tx, replace(entry, before=old, after=new))


def differing(before: msgspec.Struct, after: msgspec.Struct) -> tuple[dict[str, Any], dict[str, Any]]:
    names = [name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name, None)]
    return {name: getattr(before, name) for name in names}, {name: getattr(after, name) for name in names}


async def erase_person(tx: Queryable, account_id: int) -> None:
    """Erase what the log has of a person; the entries stay, and the chains stay whole."""
    await tx.execute(Q.erase_person, account_id)


def _row(entry: AuditEntry) -> dict[str, Any]:
    origin = entry.origin or find_origin()
    kind, id = entry.subject
    return {
        "chain": entry.organiser_id or HOUSE,
        "show_id": entry.show_id,
        "action": entry.action,
        "subject_kind": kind,
        "subject_id": str(id),
        "subject_name": entry.name,
        "actor_id": origin.actor_id,
        "person_id": entry.person_id,
        "via": origin.via,
        "before": entry.before,
        "after": entry.after,
        "personal": {**origin.personal, **entry.personal},
    }


def _login_name() -> str:
    return os.environ.get("USER") or f"uid {os.getuid()}"
