"""Commands that only runtime/launch.py starts: `python -m holdfast web-worker …`.

They are not part of the command line: Typer and the modules of all other commands would be loaded by every
child, and a child that was killed is back sooner without them.
"""

import os
from argparse import ArgumentParser
from asyncio import run
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from holdfast.cli import print_json
from holdfast.lean_import import load_redis, load_structlog, load_uvicorn, skip_collecting
from holdfast.runtime.exit_codes import run_and_exit
from holdfast.runtime.secret_files import load_config

if TYPE_CHECKING:
    from holdfast.runtime.workers import Progress


def run_child(name: str, words: list[str]) -> NoReturn:
    skip_collecting()
    load_structlog()
    load_uvicorn()
    run_and_exit(partial(CHILDREN[name], words))


def prepare(words: list[str]) -> None:
    """Check the engines, migrate and, for the demo, populate. Prints facts as JSON."""
    parser = ArgumentParser("holdfast prepare")
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--trial", action="store_true", help="no warnings: nothing is sold here")
    parser.add_argument("--begin", action="store_true", help="make the first administrator's link")
    given = parser.parse_args(words)
    load_redis()

    from holdfast.runtime import workers

    with _shown_progress(given.demo) as progress:
        facts = run(
            workers.prepare(
                load_config(os.environ),
                is_demo=given.demo,
                trial=given.trial or given.demo,
                begins=given.begin,
                progress=progress,
            )
        )
    print_json(facts)


@contextmanager
def _shown_progress(is_demo: bool) -> Iterator["Progress"]:
    """Only the demo takes long enough to show some, and needs rich for it."""
    if not is_demo:
        yield lambda _what, _done, _of: None
        return
    from holdfast.cli import output as terminal

    with terminal.progress() as progress:
        yield progress


def serve_web(words: list[str]) -> None:
    """One web worker on a port that others share."""
    parser = ArgumentParser("holdfast web-worker")
    _add_place(parser)
    _add_cue(parser)
    given = parser.parse_args(words)
    load_redis()

    from holdfast.runtime import workers

    cue = workers.Cue(given.after, given.ready)
    workers.serve_here(load_config(os.environ), host=given.host, port=given.port, cue=cue, only=given.only)


def serve_sandbox(words: list[str]) -> None:
    """The sandbox gateway beside the web workers; its secret is in the environment."""
    parser = ArgumentParser("holdfast sandbox-worker")
    _add_place(parser)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--notify", required=True)
    parser.add_argument("--ready", type=Path)
    given = parser.parse_args(words)

    from holdfast.sandbox import load_or_create_secret
    from holdfast.sandbox.process import SandboxSetup, serve_here, write_ready_file

    secret = load_config(os.environ).gateway_secret or load_or_create_secret(given.data)
    setup = SandboxSetup(folder=given.data, secret=secret, notify_url=given.notify)
    serve_here(
        setup, given.host, given.port, lambda _url: write_ready_file(given.ready) if given.ready else None
    )


def run_jobs(words: list[str]) -> None:
    """The jobs, in this process."""
    parser = ArgumentParser("holdfast jobs")
    _add_cue(parser)
    given = parser.parse_args(words)
    load_redis()

    from holdfast.runtime import workers

    workers.work_here(load_config(os.environ), cue=workers.Cue(given.after, given.ready), only=given.only)


def _add_place(parser: ArgumentParser) -> None:
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)


def _add_cue(parser: ArgumentParser) -> None:
    parser.add_argument("--after", type=Path, help="file to wait for before we open")
    parser.add_argument("--ready", type=Path, help="file to write our process id to once we are ready")
    parser.add_argument("--only", default="", help="only these subjects")


CHILDREN = {"prepare": prepare, "web-worker": serve_web, "sandbox-worker": serve_sandbox, "jobs": run_jobs}
