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
from holdfast.cli.archive import archive, require_pyarrow
from holdfast.cli.audit import add_archive, exit_code, run_audit, show_report
from holdfast.cli.backup import after_restore, backup
from holdfast.cli.facts import facts
from holdfast.cli.keys import keys, tickets
from holdfast.cli.layouts import venue_commands
from holdfast.cli.migrate import migrate
from holdfast.cli.notifications import notices
from holdfast.cli.openapi import openapi
from holdfast.cli.payments import reconcile, refunds, show, webhooks
from holdfast.cli.pods import pods
from holdfast.cli.rebuild_copies import figures, search
from holdfast.cli.rehearsal import rehearse
from holdfast.cli.replay import replay
from holdfast.cli.scanner import gate
from holdfast.cli.simulation import capacity, simulate
from holdfast.cli.verify_draw import verify_draw
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.lean_import import load_redis, load_structlog, skip_collecting
from holdfast.runtime.exit_codes import run_and_exit
from holdfast.runtime.secret_files import load_config

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.audit import HouseReport
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
for _command in (gate, capacity, rehearse, openapi, verify_draw, migrate):
    cli.command()(_command)
GROUPS = {"account": accounts, "api-key": api_keys, "keys": keys, "tickets": tickets, "facts": facts}
GROUPS |= {"figures": figures, "simulate": simulate, "pod": pods}
GROUPS |= {"webhooks": webhooks, "notices": notices, "refunds": refunds, "search": search, "show": show}
for _name, _group in GROUPS.items():
    cli.add_typer(_group, name=_name, context_settings={"obj": lambda data, act: _act(data, act)})

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0: a free one.")]
Only = Annotated[str, typer.Option(help="Only these subjects, comma-separated. [default: all]")]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Web worker processes.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
Books = Annotated[Path, typer.Option(help="Folder of the sandbox's books.")]
Notify = Annotated[str, typer.Option(help="Address its webhooks are sent to; none: they are not.")]


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
    workers: Workers = 1,
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
    archived: Annotated[
        Path | None, typer.Option("--archive", help="Folder of `holdfast archive`: audit its files, too.")
    ] = None,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Count what must never be: seats with two owners, money without a booking, limits exceeded.

    In the home database and in every pod of HOLDFAST_PODS. Exit code 1: violations; 2: something could not be
    audited.
    """
    from holdfast.audit import AUDIT_WITHIN_S

    config = replace(_config(data), postgres_timeout_s=AUDIT_WITHIN_S)
    if archived is not None:
        require_pyarrow()

    async def act(app: "App") -> "HouseReport":
        house = await run_audit(app, with_map=with_map, with_gateway=with_gateway, ends=ends)
        if archived is not None:
            await add_archive(app, house, archived)
        return house

    house = asyncio.run(_with_app(config, act))
    show_report(house, as_json)
    if code := exit_code(house):
        raise typer.Exit(code)


@cli.command()
def doctor(data: Data = None, as_json: AsJson = False) -> None:
    """Say whether this installation is fit for an on-sale tomorrow, and what to do about what is wrong.

    Looks at settings, engines, standbys, backups, clocks, disks, certificates, limits, dead letters, workers,
    the payment gateway and the mail server; changes nothing. A dependency that hangs is reported within 15
    seconds. Exit code 1: something must be put right first.
    """
    load_structlog()
    load_redis()
    from holdfast.cli.doctor import report

    asyncio.run(report(_config(data), as_json))


for _acting in (reconcile, replay, archive):
    cli.command(context_settings={"obj": lambda data, act: _act(data, act)})(_acting)


# ── beneath the commands ──────────────────────────────────────────────────────────────


def main() -> NoReturn:
    skip_collecting()
    run_and_exit(cli)


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


async def _with_app(config: Config, act: Callable[["App"], Awaitable[Result]]) -> Result:
    """`act` on an open box office whose schema is up to date."""
    load_structlog()
    load_redis()
    from holdfast.app import open_app
    from holdfast.engines import startup_checks as checks
    from holdfast.engines.migrate import plan
    from holdfast.runtime.launch import engines_of
    from holdfast.runtime.sandbox_beside import with_gateway
    from holdfast.web import log

    log.set_up(level="WARNING")  # to stderr: on stdout it would be in the midst of the answer
    async with engines_of(config, must_exist=True) as config:
        connection = await checks.connect(config.session_url)
        try:
            if await plan(connection):
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

    shows = [(app.router.for_show(show_id), show_id) for show_id in show_ids]
    if not shows:
        pods = app.router.by_name.values()
        shows = [(pod, show_id) for pod in pods for show_id in await shows_on_the_map(pod.postgres)]
    with terminal.progress() as progress:
        for done, (pod, show_id) in enumerate(shows):
            progress("maps", done, len(shows))
            await pod.bookings.mark_map_stale(show_id)
            await pod.seatmap.rebuild(show_id, "requested")
    return len(shows)
