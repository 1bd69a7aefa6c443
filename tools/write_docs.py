"""Write the docs that are generated from code: `make docs`. A tidy test fails when one is out of date.

config.py            ─► docs/operating/settings.md
cli/                 ─► docs/operating/commands.md
errors.py files      ─► docs/problems.md
bookings/booking.py  ─► docs/flows/booking.md
payments/saga.py     ─► docs/flows/payment.md
outbox/fact.py       ─► docs/facts.md
routes of subjects   ─► docs/api.md
claim/               ─► docs/claim_api.md
tools/dashboards.py  ─► deploy/grafana/*.json
holdfast capacity    ─► docs/capacity.md and its pictures (a test in tests/rules compares it)
a migrated database  ─► migrations/schema.sql (needs an engine: a test in tests/stores compares it)
"""

import asyncio
import inspect
import sys
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import msgspec
import typer

import holdfast.app  # noqa: F401 (with every folder come its refusals)
from holdfast import config
from holdfast.bookings import booking
from holdfast.cli.main import cli as commands
from holdfast.desk import DESK_PAGES
from holdfast.outbox import Body, fact
from holdfast.payments import saga
from holdfast.routes import ROUTES
from holdfast.web import problems
from holdfast.web.audiences import DOCUMENTS
from tools import capacity_page, dashboards
from tools.claim_page import claim_api
from tools.dump_schema import schema_of_new_database

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "src" / "holdfast" / "migrations" / "schema.sql"


def pages() -> dict[Path, str]:
    """The path and text of every generated page."""
    docs = ROOT / "docs"
    return {
        docs / "operating" / "settings.md": settings(),
        docs / "operating" / "commands.md": command_line(),
        docs / "problems.md": refusals(),
        docs / "flows" / "booking.md": booking_flow(),
        docs / "flows" / "payment.md": payment_flow(),
        docs / "api.md": api(),
        docs / "claim_api.md": claim_api(),
        docs / "facts.md": facts(),
        **dashboards.pages(),
    }


def settings() -> str:
    lines = [
        "# Settings",
        "",
        "Generated from `src/holdfast/config.py` by `make docs`. Settings are environment variables; a name",
        "that is not listed here stops the program at its start.",
        "",
        "A setting marked *secret* can come from a file, as containers and systemd mount secrets:",
        "`HOLDFAST_MAIL_URL_FILE=/run/secrets/mail_url` in place of `HOLDFAST_MAIL_URL`, and so on for each.",
        "A line end at the end of the file is not part of the value. A file that is missing, unreadable or",
        "empty stops the program, and so does a secret that is set both ways. A file that changes is read",
        "again without a restart: [secrets.md](secrets.md).",
    ]
    by_name = {one.name: one for one in fields(config.Config)}
    for group, names in setting_groups():
        lines += [
            "",
            f"## {group[0].upper()}{group[1:]}",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
        ]
        lines += [setting_row(by_name[name]) for name in names]
    return "\n".join(lines) + "\n"


def setting_groups() -> Iterator[tuple[str, list[str]]]:
    """Fields in the order of the file, under the comment above them."""
    group = ""
    names: list[str] = []
    for line in inspect.getsource(config.Config).splitlines():
        match line.strip().split(" ", 1):
            case ["#", title] if line.startswith("    #"):
                if names:
                    yield group, names
                group, names = title, []
            case [name, rest] if line.startswith("    ") and name.endswith(":") and is_setting(rest):
                names.append(name[:-1])
    yield group, names


def is_setting(text: str) -> bool:
    return "setting(" in text or "secret(" in text


def setting_row(one: Field[Any]) -> str:
    default = f"`{one.default}`" if one.default != "" else "(empty)"
    mark = "*secret*: " if one.metadata.get("is_secret") else ""
    return f"| `HOLDFAST_{one.name.upper()}` | {default} | {mark}{as_text(one.metadata['why'])} |"


def as_text(words: str) -> str:
    """`<hash>` would be a tag of HTML, and disappear."""
    return words.replace("<", "\\<")


def refusals() -> str:
    lines = [
        "# Problems",
        "",
        "Every refusal of the API. Generated from the `errors.py` files by `make docs`; a running server",
        "has a page for each at `/problems/{code}`. Responses are problem+json (RFC 9457).",
        "",
        "| code | status | |",
        "|---|--:|---|",
    ]
    known = problems.list_problem_pages().values()
    lines += [f"| [`{page.code}`](#{page.code}) | {page.status} | {page.title} |" for page in known]
    for page in known:
        lines += ["", f"## {page.code}", "", f"{page.status} · {page.title}", "", page.happened]
        lines += ["", page.advice] if page.advice else []
    return "\n".join(lines) + "\n"


def booking_flow() -> str:
    comments = comments_beside(booking.BookingState)
    lines = [
        "# States of a booking",
        "",
        "Generated from `MOVES` in `src/holdfast/bookings/booking.py` by `make docs`. A PostgreSQL",
        "trigger rejects every other move.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(f"    {before.name} --> {after.name}: {move}" for (before, move), after in booking.MOVES.items()),
        "```",
        "",
        "| state | meaning | takes its seats |",
        "|---|---|---|",
    ]
    for state in booking.BookingState:
        takes = "yes" if state in booking.TAKES_SEATS else ""
        lines.append(f"| {state.name} | {comments.get(state.name, '')} | {takes} |")
    return "\n".join(lines) + "\n"


def payment_flow() -> str:
    comments = comments_beside(saga.PaymentStep)
    lines = [
        "# Steps of a payment",
        "",
        "Generated from `NEXT` in `src/holdfast/payments/saga.py` by `make docs`: a step, the gateway's",
        "answer, the next step. After the answer *unknown*, every step except a charge is repeated.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(f"    {before.name} --> {after.name}: {answer}" for (before, answer), after in saga.NEXT.items()),
        *(
            f"    {before.name} --> {after.name}: time is {time.replace('_', ' ')}"
            for (before, time), after in saga.OVERTAKEN.items()
        ),
        "```",
        "",
        "| step | meaning | final |",
        "|---|---|---|",
    ]
    for step in saga.PaymentStep:
        lines.append(
            f"| {step.name} | {comments.get(step.name, '')} | {'yes' if step in saga.ENDS else ''} |"
        )
    return "\n".join(lines) + "\n"


def comments_beside(states: type, mark: str = "=") -> dict[str, str]:
    """The comment on the line of each member; `mark` is a colon for the fields of a struct."""
    found = {}
    for line in inspect.getsource(states).splitlines():
        name, _, phrase = line.partition("#")
        if mark in name and phrase:
            found[name.split(mark)[0].strip()] = phrase.strip()
    return found


def facts() -> str:
    lines = [
        "# Facts",
        "",
        "What Holdfast publishes after it is durable. Generated from `outbox/fact.py` by `make docs`. How to",
        "receive facts: [consumers.md](consumers.md).",
        "",
        "Every fact is an envelope with a body. Fields are only added to a body, never removed.",
        *("", "| envelope | | |", "|---|---|---|", *field_rows(fact.Fact)),
    ]
    for kind, body in fact.KINDS.items():
        lines += ["", f"## {kind}", "", f"Version {body.VERSION}. {inspect.getdoc(body)}"]
        if rows := field_rows(body):
            lines += ["", "| body | | |", "|---|---|---|", *rows]
    return "\n".join(lines) + "\n"


def field_rows(struct: type[msgspec.Struct]) -> list[str]:
    notes: dict[str, str] = {}
    for one in reversed([one for one in struct.__mro__ if one.__module__ == struct.__module__]):
        notes |= comments_beside(one, ":")
    return [
        f"| `{one.name}` | {type_name(one.type)} | {notes.get(one.name, '')} |"
        for one in msgspec.structs.fields(struct)
    ]


def type_name(kind: Any) -> str:
    """tuple[int, ...] → list of int; str | None → str or null"""
    if kind is Body:
        return "object"
    if inside := getattr(kind, "__args__", None):
        if getattr(kind, "__origin__", None) is tuple:
            return f"list of {type_name(inside[0])}"
        return " or ".join(type_name(one) for one in inside)
    return {"NoneType": "null", "datetime": "time"}.get(kind.__name__, str(kind.__name__))


def api() -> str:
    lines = [
        "# API overview",
        "",
        "Generated from the routes by `make docs`. A running server has OpenAPI documents with bodies and",
        "responses, and an interactive page that works offline at `/docs`. Every operation is in exactly one",
        "document; `holdfast openapi` prints all of them as one, for generators of clients.",
        "",
        "| document | for | |",
        "|---|---|---|",
        *(
            f"| `{about.path}` | {audience} | {about.intro.partition('. ')[0]}. |"
            for audience, about in DOCUMENTS.items()
        ),
    ]
    desk = {(page.method, page.path): f"as {', '.join(page.like)}" for page in DESK_PAGES if page.like}
    for tag in dict.fromkeys(route.tag for route in ROUTES):
        lines += ["", f"## {tag}", "", "| | who | |", "|---|---|---|"]
        for route in ROUTES:
            if route.tag == tag:
                who = desk.get((route.method, route.path)) or str(route.right or route.role or "anyone")
                path = route.full_path.replace(":int", "")
                lines.append(f"| `{route.method} {path}` | {who} | {as_text(route.doc.splitlines()[0])} |")
    return "\n".join(lines) + "\n"


def command_line() -> str:
    lines = ["# Commands", "", "Generated from `src/holdfast/cli/` by `make docs`."]
    for name, command in every_command():
        options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
        arguments = [f"{one.name.upper()}" for one in command.params if one.param_type_name == "argument"]
        usage = " ".join([name, *(["[options]"] if options else []), *arguments])
        lines += ["", f"## {name}", "", inspect.cleandoc(command.help or ""), "", "```", usage, "```"]
        if options:
            lines += ["", "| option | default | |", "|---|---|---|", *map(option_row, options)]
    return "\n".join(lines) + "\n"


def every_command() -> list[tuple[str, Any]]:
    """(full name, command) of every command that is not hidden. Any: typer bundles its own click."""
    return list(_leaves("holdfast", typer.main.get_command(commands)))


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inside = getattr(command, "commands", None)
    if inside is None and not command.hidden:
        yield name, command
    for word, child in (inside or {}).items():
        yield from _leaves(f"{name} {word}", child)


def option_row(option: Any) -> str:
    default = f"`{option.default}`" if option.default not in (None, False, "") else ""
    return f"| `{' / '.join(option.opts)}` | {default} | {option.help or ''} |"


def main() -> int:
    everything = pages() | {SCHEMA: asyncio.run(schema_of_new_database())}
    for path, text in everything.items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return capacity_page.main()


if __name__ == "__main__":
    sys.exit(main())
