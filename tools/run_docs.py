"""Runs the commands of docs/operating on this machine, word for word, and writes docs/operating/executed.md.

    python -m tools.run_docs              minutes; needs Debian's postgresql and redis-server, and the network
    python -m tools.run_docs --page backup
    python -m tools.run_docs --page nginx,sizes,upgrading      these share a machine: in this order

The wheel is installed from the lock file into an empty environment, and uses PostgreSQL and Redis of the
system, started in a temporary folder on ports of their own. Each block is pasted into bash. Four things
differ from what an operator types: addresses where the page has "…"; variables that the page explains;
commands that run until they are stopped (serve, work, demo, sandbox) are stopped once they are ready; and
what is installed into /opt and /etc gets there in layers over these folders, where systemd verifies the units
and tools/run_docs_machine.sh starts them.
"""

import argparse
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.executed_blocks import GENERATED, executor
from tests.tidy.markdown_pages import Block, blocks
from tools.docs_recipes import find_recipe

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "operating"
OUTPUT = PAGES / "executed.md"
WITHIN_S = 300
NOT_YET = "no run of `tools/run_docs.py` is recorded for this release"
# A command that runs until it is stopped: it has printed that it is up, then it is stopped as by Ctrl-C.
PREAMBLE = r"""
holdfast() {
    case $1 in serve|work|demo|sandbox) ;; *) command holdfast "$@"; return ;; esac
    local log=$(mktemp)
    command holdfast "$@" --json > "$log" & local process=$!
    for _ in $(seq 600); do
        if [ -s "$log" ]; then kill -TERM $process; wait $process; return; fi
        kill -0 $process || { wait $process; return; }
        sleep 0.1
    done
    kill -KILL $process; return 1
}
export -f holdfast
"""
BASH = ("bash", "-euo", "pipefail", "-c")
READ_MACHINE = '. "$REPOSITORY"/tools/run_docs_machine.sh'


@dataclass(frozen=True)
class Outcome:
    block: Block
    how: str  # a test's name, "here", "not run", "failed"
    detail: str = ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def install(folder: Path) -> Path:
    """As docs/operating/sizes.md does it, in a folder of our own instead of /opt/holdfast."""
    environment = folder / "holdfast"
    venv.create(environment, with_pip=True)
    pip = (str(environment / "bin" / "pip"), "--disable-pip-version-check", "-q")
    run = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist"))
    subprocess.run(run, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [*pip, "install", "--require-hashes", "-r", str(ROOT / "requirements" / "image.txt")], check=True
    )
    (wheel,) = (folder / "dist").glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", str(wheel)], check=True)
    return environment / "bin"


@dataclass(frozen=True)
class Server:
    port: int
    sockets: Path

    @property
    def url(self) -> str:
        return f"postgresql://holdfast@127.0.0.1:{self.port}/holdfast"


@contextmanager
def postgresql(folder: Path, name: str, right: str = "") -> Iterator[Server]:
    """Of Debian, as the account that Debian made for it; with the account and databases of engines.md.

    Without a `right` it is as Debian makes it: empty, and with passwords.
    """
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    port, data, sockets = free_port(), folder / name, folder / f"{name}-sockets"
    for place in (data, sockets):
        place.mkdir()
        shutil.chown(place, "postgres")
    as_postgres = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")

    def run(program: str, *words: str) -> None:
        whole = [*as_postgres, str(programs / program), *words]
        subprocess.run(whole, check=True, stdout=subprocess.DEVNULL, cwd="/")

    hosts = "trust" if right else "scram-sha-256"
    access = ("--auth-local=trust", f"--auth-host={hosts}")
    run("initdb", "--encoding=UTF8", "--locale=C.UTF-8", *access, "-D", str(data))
    places = f"-c listen_addresses=127.0.0.1 -c unix_socket_directories={sockets}"
    options = f"-p {port} {places} -c wal_level=logical"
    run("pg_ctl", "-w", "-D", str(data), "-l", str(data / "log"), "-o", options, "start")
    try:
        if right:
            at = ("-h", "127.0.0.1", "-p", str(port))
            run("createuser", *at, right, "holdfast")
            for database in ("holdfast", "home"):
                run("createdb", *at, "-O", "holdfast", "-E", "UTF8", database)
        yield Server(port, sockets)
    finally:
        run("pg_ctl", "-w", "-D", str(data), "-m", "immediate", "stop")


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    assert program, "install redis-server"
    port = free_port()
    words = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--maxmemory-policy", "noeviction")
    process = subprocess.Popen([program, *words, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def sandbox(folder: Path, program: Path) -> Iterator[dict[str, str]]:
    """A gateway for `holdfast reconcile` and the doctor."""
    port, secret = free_port(), "whsec_of_the_docs"
    words = ("sandbox", "--port", str(port), "--secret", secret, "--data", str(folder / "sandbox"))
    process = subprocess.Popen([program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield {
            "HOLDFAST_GATEWAY": "sandbox",
            "HOLDFAST_GATEWAY_URL": f"http://127.0.0.1:{port}",
            "HOLDFAST_GATEWAY_SECRET": secret,
        }
    finally:
        process.terminate()
        process.wait()


def end_service(process: int) -> None:
    """It is not our child: we only see that it is gone."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)
        for _ in range(450):
            time.sleep(0.1)
            os.kill(process, 0)


@contextmanager
def machine(folder: Path, work: Path, env: dict[str, str]) -> Iterator[dict[str, str]]:
    """Layers over /etc, /opt and others, which only blocks of a machine see, as long as this runs."""
    services = folder / "services"
    services.mkdir()
    with postgresql(folder, "machine-postgresql") as server:
        env = env | {
            "SERVICES": str(services),
            "SERVE_PORT": str(free_port()),
            "WORK_PORT": str(free_port()),
            "TLS_PORT": str(free_port()),
            "MACHINE_SOCKETS": str(server.sockets),
            "MACHINE_PORT": str(server.port),
            "MACHINE_REDIS_URL": f"{env['HOLDFAST_REDIS_URL'].removesuffix('/0')}/3",
        }
        files = 'ln -s "$REPOSITORY"/deploy "$REPOSITORY"/requirements "$DIST"/*.whl .'
        made = f"{READ_MACHINE}\nmake_machine\n{files}\necho made\nexec sleep infinity"
        words = ("unshare", "--mount", *BASH, made)
        holder = subprocess.Popen(words, env=env, cwd=work, stdout=subprocess.PIPE)
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"made\n", "the machine could not be made"
            yield env | {"MACHINE": str(holder.pid)}
        finally:
            for file in services.glob("*.pid"):
                end_service(int(file.read_text()))
            holder.terminate()
            holder.wait()


def run_block(block: Block, env: dict[str, str], folder: Path) -> Outcome:
    recipe = find_recipe(block)
    if recipe is None or recipe.why_not:
        return Outcome(block, "not run", recipe.why_not if recipe else "no recipe")
    text = block.text
    for shown, real in recipe.given.items():
        text = text.replace(shown, real)
    text = text.replace("postgresql://…", env["HOLDFAST_DATABASE_URL"])
    text = text.replace("redis://…", env["HOLDFAST_REDIS_URL"])
    began = time.monotonic()
    inside = ("nsenter", "--mount", f"--target={env['MACHINE']}") if recipe.is_machine else ()
    first = f"cd {shlex.quote(str(folder))}\n{READ_MACHINE}" if recipe.is_machine else PREAMBLE
    done = subprocess.run(
        # `timeout` ends what the block has started, too.
        [*inside, "timeout", str(recipe.within_s), *BASH, f"{first}\n{recipe.before}\n{text}"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    print(f"{block.place}: exit {done.returncode}, {time.monotonic() - began:.1f} s", flush=True)
    if done.returncode:
        print((done.stdout + done.stderr)[-2000:])
        return Outcome(block, "failed", f"exit code {done.returncode}")
    return Outcome(block, "here")


def build_home(env: dict[str, str], pod: str) -> dict[str, str]:
    """Of pods.md: other databases of the same servers. Before PostgreSQL 16 only a superuser subscribes."""
    server, redis_server = env["HOLDFAST_DATABASE_URL"], env["HOLDFAST_REDIS_URL"].removesuffix("/0")
    return {
        "HOME_DATABASE_URL": f"{server.removesuffix('/holdfast')}/home",
        "HOME_REDIS_URL": f"{redis_server}/1",
        "A_POD": f"east={pod},{redis_server}/2",
        "ADMIN_DATABASE_URL": server.replace("//holdfast@", "//postgres@"),
    }


def populate(env: dict[str, str], folder: Path) -> None:
    """The demo's programme, so that commands about shows have some."""
    demo = f"{PREAMBLE}\nholdfast demo --port 0"
    subprocess.run(["bash", "-c", demo], env=env, cwd=folder, check=True, timeout=WITHIN_S)


def page_blocks(only: str) -> list[Block]:
    paths = sorted(path for path in PAGES.glob("*.md") if path != OUTPUT)
    chosen = [path for path in paths if any(part in path.stem for part in only.split(","))]
    return [block for path in chosen for block in blocks(path)]


def is_run_here(block: Block) -> bool:
    recipe = find_recipe(block)
    is_shell = block.language == "sh" and not executor(block)
    return is_shell and recipe is not None and not recipe.why_not


def judge(block: Block, env: dict[str, str], folder: Path) -> Outcome:
    if test := executor(block):
        return Outcome(block, test)
    if block.reason and not is_run_here(block):
        return Outcome(block, "not run", block.reason)
    if block.language != "sh":
        return Outcome(
            block, "checked", f"{block.language}: compared with the code by tests/tidy/test_blocks.py"
        )
    return run_block(block, env, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--page", default="", help="only pages whose name has one of these, and their rows")
    parser.add_argument("--list", action="store_true", help="runs nothing; the rows say so")
    options = parser.parse_args()
    chosen = page_blocks(options.page)
    if options.list:
        outcomes = [
            Outcome(block, "not run", NOT_YET) if is_run_here(block) else judge(block, {}, Path())
            for block in chosen
        ]
    else:
        outcomes = run_all(chosen)
    OUTPUT.write_text(replace_rows(OUTPUT.read_text(), outcomes))
    return int(any(one.how == "failed" for one in outcomes))


def run_all(chosen: list[Block]) -> list[Outcome]:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # engines and services end, too
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        programs = install(folder)
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))
        }
        ledger = stack.enter_context(postgresql(folder, "postgresql", "--replication"))
        env = clean | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOLDFAST_DATABASE_URL": ledger.url,
            "HOLDFAST_REDIS_URL": stack.enter_context(redis(folder)),
            **stack.enter_context(sandbox(folder, programs / "holdfast")),
        }
        env |= build_home(env, stack.enter_context(postgresql(folder, "pod", "--superuser")).url)
        env |= {"REPOSITORY": str(ROOT), "DIST": str(folder / "dist"), "SITE_PORT": str(free_port())}
        work = folder / "work"
        work.mkdir()
        populate(env, work)
        if any((recipe := find_recipe(block)) and recipe.is_machine for block in chosen):
            env = stack.enter_context(machine(folder, work, env))
        return [judge(block, env, work) for block in chosen]


HEAD = """\
# Which commands of these pages are executed

Written by `python -m tools.run_docs`. It installs the wheel into an empty environment, starts PostgreSQL
and Redis of Debian, and runs what no test runs. Tests run on every change. A block without either has its
reason here; all blocks are checked for commands, options, routes and settings that exist
(`tests/tidy/test_blocks.py`).

| page and section | language | blocks | executed by | not run because |
|---|---|--:|---|---|
"""


def replace_rows(table: str, outcomes: list[Outcome]) -> str:
    """The rows of the pages that were run; those of others stay. Rows of pages that are gone do not."""
    ran = {Path(one.block.page).name for one in outcomes}
    old = [row for row in table.splitlines() if row.startswith("| [") and page_of(row) not in ran]
    rows = [*render_rows(outcomes), *(row for row in old if (PAGES / page_of(row)).exists())]
    return HEAD + "".join(f"{row}\n" for row in sorted(rows, key=page_of))


def page_of(row: str) -> str:
    return row.removeprefix("| [").partition("]")[0]


def render_rows(outcomes: list[Outcome]) -> Iterator[str]:
    rows: Counter[tuple[str, ...]] = Counter()
    for one in outcomes:
        page = one.block.page.rpartition("/")[2]
        section = "" if one.block.page in GENERATED else one.block.section
        by = {"here": "`tools/run_docs.py`", "not run": "–", "failed": "**failed**", "checked": "–"}
        place = f"[{page}]({page}#{section}) {section}" if section else f"[{page}]({page})"
        rows[place, one.block.language, by.get(one.how, f"`{one.how}`"), one.detail] += 1
    for (place, language, test, detail), count in rows.items():
        yield f"| {place} | {language} | {count} | {test} | {detail} |"


if __name__ == "__main__":
    sys.exit(main())
