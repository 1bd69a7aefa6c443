"""Entries of the audit log as readers get them. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from holdfast.web.pod_pages import Positions

PAGE_MAX = 200
BIGINT_MAX = 2**63 - 1
Id = Annotated[int, Meta(ge=0, le=BIGINT_MAX)]
Word = Annotated[str, Meta(min_length=1, max_length=80)]
Moment = Annotated[datetime, Meta(tz=True)]

CSV_COLUMNS = (
    *("number", "at", "action", "subject_kind", "subject_id", "subject_name", "actor_id", "actor_name"),
    *("actor_email", "via", "address", "agent", "request_id", "before", "after", "personal", "hash"),
    "pod",
)
ORIGIN = ("address", "agent", "request_id")


class AuditFilter(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    organisation: Id | None = None  # for admins: whose log; none: the house's
    action: Word | None = None  # "show.changed"
    actor: Id | None = None  # account
    subject: Word | None = None  # "show"
    id: Word | None = None  # of the subject
    since: Moment | None = None
    until: Moment | None = None


class AuditQuery(AuditFilter, frozen=True, kw_only=True):
    before: Positions = ""  # `next` of the page before
    size: Annotated[int, Meta(ge=1, le=PAGE_MAX)] = 50


class AuditActor(Struct, frozen=True):
    account_id: int
    name: str | None  # null: the account is deleted
    email: str | None


class AuditLine(Struct, frozen=True, kw_only=True):
    pod: str  # in whose database the change was made, which has a log of its own; empty: the home database
    number: int  # 1, 2, 3, … within the log of that database
    at: datetime
    action: str
    subject_kind: str
    subject_id: str
    subject_name: str
    actor: AuditActor | None  # null: an API key, the command line, or a job
    via: str  # api, page, command, job, or an API key: "key 7"
    address: str | None  # of the client; null: erased
    agent: str | None  # its program
    request_id: str | None
    before: dict[str, Any]  # of the fields that changed
    after: dict[str, Any]
    personal: dict[str, Any] | None  # further personal data of the entry; null: erased
    hash: str  # covers this entry and, with the hash of the one before, all earlier ones


class AuditHead(Struct, frozen=True):
    number: int
    hash: str


class AuditPage(Struct, frozen=True):
    entries: list[AuditLine]
    next: str | None  # ask for `before` this to go on; null: that was all
    head: AuditHead | None  # the last entry: note it elsewhere, and no one can shorten the log unnoticed
    pod_heads: dict[str, AuditHead] = msgspec.field(default_factory=dict)  # the same of each pod's log
    complete: bool = True  # false: some databases cannot be reached, their entries are missing
    missing_pods: list[str] = msgspec.field(default_factory=list)


def build_line(row: Any, pod: str) -> AuditLine:
    personal = None if row["personal"] is None else msgspec.json.decode(row["personal"], type=dict[str, Any])
    origin = {name: (personal or {}).get(name) for name in ORIGIN}
    rest = None if personal is None else {k: v for k, v in personal.items() if k not in ORIGIN}
    actor_id = row["actor_id"]
    return AuditLine(
        pod=pod,
        number=row["number"],
        at=row["at"],
        action=row["action"],
        subject_kind=row["subject_kind"],
        subject_id=row["subject_id"],
        subject_name=row["subject_name"],
        actor=None if actor_id is None else AuditActor(actor_id, row["actor_name"], row["actor_email"]),
        via=row["via"],
        before=msgspec.json.decode(row["before"]),
        after=msgspec.json.decode(row["after"]),
        personal=rest,
        hash=row["hash"].hex(),
        **origin,
    )


def csv_row(line: AuditLine) -> Sequence[object]:
    actor = line.actor
    return (
        *(line.number, line.at.isoformat(), line.action, line.subject_kind, line.subject_id),
        *(line.subject_name, *((actor.account_id, actor.name, actor.email) if actor else ("", "", ""))),
        *(line.via, line.address, line.agent, line.request_id),
        *(msgspec.json.encode(part).decode() for part in (line.before, line.after, line.personal)),
        line.hash,
        line.pod,
    )
