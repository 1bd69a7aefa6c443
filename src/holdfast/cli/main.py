"""holdfast demo, serve, work, sandbox, migrate, rebuild, audit, doctor, reconcile; venue, facts, webhooks …

A command is a function; its docstring is its help. It calls a subject and prints; it has no logic.
What a command needs it imports itself, so that `--help` is quick and a supervising process stays small.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from holdfast.cli import print_json
from holdfast.cli.accounts import accounts
from holdfast.cli.api_keys import api_keys
from holdfast.cli.audit import run_audit, show_report
from holdfast.cli.backup import after_restore, backup
from holdfast.cli.facts import facts
from holdfast.cli.keys import keys, tickets
from holdfast.cli.layouts import venue_commands
from holdfast.cli.notifications import notices
from holdfast.cli.openapi import openapi
from holdfast.cli.payments import reconcile, refunds, show, webhooks
from holdfast.cli.rebuild_copies import figures, search
from holdfast.cli.rehearsal import rehearse
from holdfast.cli.replay import replay
from holdfast.cli.scanner import gate
from holdfast.cli.simulation import capacity, simulate
from holdfast.cli.verify_draw import verify_draw
from holdfast.config import Config
from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.errors import Refusal
from holdfast.lean_import import load_structlog, skip_collecting
from holdfast.runtime.launch import EXPECTED
from holdfast.runtime.secret_files import load_config

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.audit import Report
    from holdfast.runtime.launch import Launched, LaunchOptions

Result = TypeVar("Result")

cli = typer.Typer(
    help="A ticket box office that never sells a seat twice.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.add_typer(venue_commands(lambda data, act: _act(data, act)), name="venue")
cli.add_typer(backup, name="backup")
cli.command("after-restore")(after_restore)
for _command in (gate, capacity, rehearse, openapi, verify_draw):
    cli.command()(_command)
GROUPS = {"account": accounts, "api-key": api_keys, "keys": keys, "tickets": tickets, "facts": facts}
GROUPS |= {"figures": figures, "simulate": simulate}
GROUPS |= {"webhooks": webhooks, "notices": notices, "refunds": refunds, "search": search, "show": show}
for _name, _group in GROUPS.items():
    cli.add_typer(_group, name=_name, context_settings={"obj": lambda data, act: _act(data, act)})

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.")]
Only = Annotated[str, typer.Option(help="Only these subjects, comma-separated. [default: all]")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Web worker processes.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
After = Annotated[Path | None, typer.Option(help="File to wait for before we open.")]
Books = Annotated[Path, typer.Option(help="Folder of the sandbox's books.")]
Notify = Annotated[str, typer.Option(help="Address its webhooks are sent to; none: they are not.")]
Ready = Annotated[Path | None, typer.Option(help="File to write our process id to once we are ready.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"holdfast {version('holdfast')}")
        raise typer.Exit


@cli.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A ticket box office that never sells a seat twice."""


@cli.command()
def demo(
    port: Port = 8000,
    host: Host = "127.0.0.1",
    data: Data = None,
    workers: Workers = 2,
    as_json: AsJson = False,
) -> None:
    """Start a populated box office: engines, data, web workers, jobs. Ctrl-C stops it; the data stays."""
    from holdfast.runtime.launch import LaunchOptions

    options = LaunchOptions(config=_config(data), host=host, port=port, web=workers, work=1, is_demo=True)
    _run(options, as_json)


@cli.command()
def serve(
    port: Port = 8000,
    host: Host = "127.0.0.1",
    data: Data = None,
    workers: Workers = 2,
    only: Only = "",
    as_json: AsJson = False,
) -> None:
    """Serve HTTP. Engines are those of HOLDFAST_DATABASE_URL and HOLDFAST_REDIS_URL, else embedded ones."""
    from holdfast.runtime.launch import LaunchOptions
    from holdfast.runtime.subjects import SERVED, parse_only

    parse_only(only, SERVED)
    begins = sys.stdout.isatty() and not as_json  # the link is a secret: it is in no log
    options = LaunchOptions(config=_config(data), host=host, port=port, web=workers, only=only, begins=begins)
    _run(options, as_json)


@cli.command()
def work(data: Data = None, only: Only = "", as_json: AsJson = False) -> None:
    """Carry out the jobs: sweep lapsed bookings, compare map and ledger. Any number may run at once."""
    from holdfast.runtime.launch import LaunchOptions
    from holdfast.runtime.subjects import WORKED, parse_only

    parse_only(only, WORKED)
    _run(LaunchOptions(config=_config(data), work=1, only=only), as_json)


@cli.command()
def sandbox(
    port: Port = 8420,
    host: Host = "127.0.0.1",
    data: Books = Path(".holdfast/sandbox"),
    notify: Notify = "",
    secret: Annotated[str, typer.Option(help="Shared with the shop. [default: one it keeps]")] = "",
    as_json: AsJson = False,
) -> None:
    """A payment gateway that misbehaves to order, for demos and tests. It moves no money."""
    from holdfast.sandbox.process import SandboxSetup, serve_here

    def announce(url: str) -> None:
        if as_json:
            print_json({"url": url, "data": str(data)})
        else:
            print(f"The sandbox gateway is at {url}; its books and its secret are in {data}.", flush=True)

    setup = SandboxSetup(folder=data, secret=_sandbox_secret(secret, data), notify_url=notify)
    serve_here(setup, host, port, announce)


@cli.command()
def migrate(
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done, and do nothing.")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Bring the ledger's schema up to date. Safe to run by many at once."""
    names = asyncio.run(_migrate(_config(data), only_plan))
    if as_json:
        print_json({"pending" if only_plan else "applied": names})
    elif not names:
        print("The schema is up to date.")
    else:
        for name in names:
            print(f"{'would apply' if only_plan else 'applied'} {name}")


@cli.command()
def rebuild(
    shows: Annotated[list[int] | None, typer.Argument(help="Numbers of shows; none: all with a map.")] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the seat maps in Redis from the ledger. A show sells again as soon as its map is back."""
    count = asyncio.run(_with_app(_config(data), lambda app: _rebuild(app, shows or [])))
    if as_json:
        print_json({"rebuilt": count})
    else:
        print(f"rebuilt {count} maps")


@cli.command()
def audit(
    with_map: Annotated[bool, typer.Option("--map", help="Compare Redis with the ledger, too.")] = False,
    with_gateway: Annotated[
        bool, typer.Option("--gateway", help="Ask the gateway about every payment, too.")
    ] = False,
    ends: Annotated[
        Path | None,
        typer.Option(help="File with the ends of the audit logs: compared with those of the run before."),
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Count what must never be: seats with two owners, money without a booking, limits exceeded."""
    from holdfast.audit import AUDIT_WITHIN_S

    config = replace(_config(data), postgres_timeout_s=AUDIT_WITHIN_S)

    def act(app: "App") -> Awaitable["Report"]:
        return run_audit(app, with_map=with_map, with_gateway=with_gateway, ends=ends)

    report = asyncio.run(_with_app(config, act))
    show_report(report, as_json)
    if report.total:
        raise typer.Exit(1)


@cli.command()
def doctor(data: Data = None, as_json: AsJson = False) -> None:
    """Look at python, engines, settings, disk, clocks and migrations; say how to put right what is wrong."""
    healthy = asyncio.run(_doctor(_config(data), as_json))
    if not healthy:
        raise typer.Exit(1)


for _acting in (reconcile, replay):
    cli.command(context_settings={"obj": lambda data, act: _act(data, act)})(_acting)


# ── inside child processes ────────────────────────────────────────────────────────────


@cli.command(hidden=True)
def prepare(
    is_demo: Annotated[bool, typer.Option("--demo")] = False,
    trial: Annotated[bool, typer.Option("--trial", help="No warnings: nothing is sold here.")] = False,
    begins: Annotated[bool, typer.Option("--begin", help="Make the first administrator's link.")] = False,
) -> None:
    """Check the engines, migrate and, for the demo, populate. Prints facts as JSON."""
    from holdfast.cli import output as terminal
    from holdfast.runtime import workers

    with terminal.progress() as progress:
        facts = asyncio.run(
            workers.prepare(
                _config(None), is_demo=is_demo, trial=trial or is_demo, begins=begins, progress=progress
            )
        )
    print_json(facts)


@cli.command("web-worker", hidden=True)
def web_worker(host: Host, port: Port, after: After = None, ready: Ready = None, only: Only = "") -> None:
    """One web worker on a port that others share."""
    from holdfast.runtime import workers

    workers.serve_here(_config(None), host=host, port=port, cue=workers.Cue(after, ready), only=only)


@cli.command("sandbox-worker", hidden=True)
def sandbox_worker(host: Host, port: Port, data: Books, notify: Notify, ready: Ready = None) -> None:
    """The sandbox gateway beside the web workers; its secret is in the environment."""
    from holdfast.sandbox.process import SandboxSetup, serve_here, write_ready_file

    setup = SandboxSetup(folder=data, secret=_sandbox_secret("", data), notify_url=notify)
    serve_here(setup, host, port, lambda _url: write_ready_file(ready) if ready else None)


@cli.command(hidden=True)
def jobs(after: After = None, ready: Ready = None, only: Only = "") -> None:
    """The jobs, in this process."""
    from holdfast.runtime import workers

    workers.work_here(_config(None), cue=workers.Cue(after, ready), only=only)


# ── beneath the commands ──────────────────────────────────────────────────────────────


def main() -> NoReturn:
    """Expected trouble is one line on stderr and exit code 2; a traceback is always a bug."""
    skip_collecting()
    try:
        cli()
    except OperatorError as trouble:
        _refuse(str(trouble))
    except EngineDown as down:
        _refuse(f"{down}: is the engine up? `holdfast doctor` looks")
    except Refusal as refusal:
        details = ", ".join(f"{name} {value}" for name, value in refusal.details.items())
        _refuse(f"{refusal.title}: {details}")
    except SystemExit as leaving:
        if isinstance(leaving.code, str):  # a setting that cannot be parsed
            _refuse(leaving.code)
        raise
    sys.exit(0)


def _refuse(line: str) -> NoReturn:
    if line:
        print(f"holdfast: {line}", file=sys.stderr)
    sys.exit(EXPECTED)


def _config(data: Path | None) -> Config:
    config = load_config(os.environ)
    return replace(config, data_dir=str(data)) if data else config


def _sandbox_secret(given: str, folder: Path) -> str:
    from holdfast.sandbox import load_or_create_secret

    return given or _config(None).gateway_secret or load_or_create_secret(folder)


def _run(options: "LaunchOptions", as_json: bool) -> None:
    from holdfast.runtime.launch import run

    asyncio.run(run(options, _announce_json if as_json else _announce))


def _announce_json(opened: "Launched") -> None:
    print_json({"url": opened.url, **opened.facts, "data": opened.data})


def _announce(opened: "Launched") -> None:
    from holdfast.cli import output as terminal

    terminal.welcome(opened)


async def _migrate(config: Config, only_plan: bool) -> list[str]:
    from holdfast.engines import migrate
    from holdfast.engines import startup_checks as checks
    from holdfast.runtime.launch import engines_of

    async with engines_of(config, must_exist=only_plan) as config:
        connection = await checks.connect(config.session_url)
        try:
            taken = await (migrate.plan if only_plan else migrate.migrate)(connection)
        finally:
            await connection.close()
    return [step.name for step in taken]


async def _with_app(config: Config, act: Callable[["App"], Awaitable[Result]]) -> Result:
    """`act` on an open box office whose schema is up to date."""
    load_structlog()
    from holdfast.app import open_app
    from holdfast.engines import migrate
    from holdfast.engines import startup_checks as checks
    from holdfast.runtime.launch import engines_of
    from holdfast.runtime.sandbox_beside import with_gateway
    from holdfast.web import log

    log.set_up(level="WARNING")  # to stderr: on stdout it would be in the midst of the answer
    async with engines_of(config, must_exist=True) as config:
        connection = await checks.connect(config.session_url)
        try:
            if await migrate.plan(connection):
                raise OperatorError("the schema is not up to date: run `holdfast migrate` first")
        finally:
            await connection.close()
        async with open_app(with_gateway(config)) as app:
            return await act(app)


def _act(data: Path | None, act: Callable[["App"], Awaitable[Result]]) -> Result:
    return asyncio.run(_with_app(_config(data), act))


async def _rebuild(app: "App", show_ids: list[int]) -> int:
    from holdfast.audit import shows_on_the_map
    from holdfast.cli import output as terminal

    shows = show_ids or await shows_on_the_map(app.postgres)
    with terminal.progress() as progress:
        for done, show_id in enumerate(shows):
            progress("maps", done, len(shows))
            await app.bookings.mark_map_stale(show_id)
            await app.seatmap.rebuild(show_id, "requested")
    return len(shows)


async def _doctor(config: Config, as_json: bool) -> bool:
    from holdfast.cli import output as terminal
    from holdfast.cli.doctor import findings
    from holdfast.runtime.check_settings import Severity

    found = [finding async for finding in findings(config)]
    if as_json:
        print_json([finding.page() for finding in found])
    else:
        terminal.show_findings(found)
    return all(finding.health is not Severity.FAIL for finding in found)
