"""Runs the commands of docs/operating on this machine, word for word, and writes docs/operating/executed.md.

    python -m tools.run_docs              minutes; needs Debian's postgresql and redis-server, and the network
    python -m tools.run_docs --page backup

The wheel is installed from the lock file into an empty environment, and uses PostgreSQL and Redis of the
system, started in a temporary folder on ports of their own. Each block is pasted into bash. Four things
differ from what an operator types: addresses where the page has "…"; variables that the page explains;
commands that run until they are stopped (serve, work, demo, sandbox) are stopped once they are ready; and
what is installed into /opt and /etc gets there in a copy of them, where systemd checks the units and does not
start them.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.tidy.executed_blocks import GENERATED, executor
from tests.tidy.markdown_pages import Block, blocks

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


@dataclass(frozen=True)
class Recipe:
    """How the shell blocks of a page or section are run."""

    before: str = ""  # typed before the block
    given: dict[str, str] = field(default_factory=dict)  # in place of "…" and of what needs another company
    why_not: str = ""  # it cannot be run here
    is_marked: bool = False  # the page says that it is not runnable, by tests; here it is
    is_machine: bool = False  # it installs into /opt and /etc: it gets copies of its own


# What `install` and systemd find on a machine. No systemd runs that could start the units: it checks them.
A_MACHINE = """
machine=$PWD/machine
mkdir $machine && mount -t tmpfs tmpfs $machine
for folder in /etc /opt /usr/lib/sysusers.d; do
    mkdir -p $machine/upper$folder $machine/work$folder
    layers=upperdir=$machine/upper$folder,workdir=$machine/work$folder
    mount -t overlay overlay -o lowerdir=$folder,$layers $folder
done
ln -s $REPOSITORY/deploy $REPOSITORY/requirements $DIST/*.whl .
systemctl() {
    case $1 in enable) systemd-analyze verify /etc/systemd/system/holdfast-* ;; esac
}
"""
# The doctor expects `holdfast work` somewhere, and a backup.
A_WORKER = """
holdfast backup record --by pg_basebackup
command holdfast work --json > worker.log & worker=$!
trap 'kill $worker; wait $worker' EXIT
until [ -s worker.log ]; do sleep 0.1; done
sleep 2  # its jobs take their turns
"""
FIT = "export HOLDFAST_GATEWAY=none"  # to the doctor, the sandbox is a fault of a house that sells
# A home of its own, with wal_level = logical, and a pod.
A_HOME = "export HOLDFAST_DATABASE_URL=$HOME_DATABASE_URL HOLDFAST_REDIS_URL=$HOME_REDIS_URL"
A_POD = {'"east=postgresql://holdfast@db-east/holdfast,redis://valkey-east/0"': '"$A_POD"'}
RECIPES = {
    "accounts.md": Recipe(
        before="holdfast account add omar@tickets.example --role fan --name Omar >/dev/null || true"
    ),
    "backup.md#backups": Recipe(
        before="unset HOLDFAST_DATABASE_URL HOLDFAST_REDIS_URL; holdfast serve --port 0"
    ),
    "backup.md#how-old-it-may-be": Recipe(),
    "backup.md#restored-postgresql-yourself-run-this": Recipe(),
    "door.md": Recipe(
        why_not="needs the address of a site and the code of a pass; tests/journeys run it with theirs"
    ),
    "failures.md": Recipe(),
    "game_day.md#doctor-and-game-day": Recipe(before=FIT + A_WORKER),
    "game_day.md#game-day": Recipe(
        why_not="needs minutes, and the repository; `make gameday` runs tests/storms/test_game_day.py"
    ),
    "notices.md": Recipe(given={"replay 4711": "replay --all-dead"}),
    "organisers.md": Recipe(),
    "payments.md": Recipe(given={"replay evt_123": "replay --all-dead"}),
    "pods.md#add-a-pod": Recipe(before=f"{A_HOME}\nholdfast demo --port 0", given=A_POD),
    "pods.md": Recipe(before=f'{A_HOME}\nexport HOLDFAST_PODS="$A_POD"'),
    "rehearsing.md": Recipe(
        why_not="needs a rehearsal of minutes; tests/journeys/test_rehearsal.py runs a small one"
    ),
    "running.md#running": Recipe(before=A_WORKER, given={"HOLDFAST_GATEWAY=stripe": "HOLDFAST_GATEWAY=none"}),
    "running.md": Recipe(),
    "sandbox.md": Recipe(),
    "secrets.md#postgresql": Recipe(before="LEDGER=$ADMIN_DATABASE_URL", is_marked=True),
    "secrets.md#redis-and-valkey": Recipe(
        before='valkey-cli() { redis-cli -u "$HOLDFAST_REDIS_URL" "$@"; }\n'
        "valkey-cli ACL SETUSER holdfast on '>old-password' '~*' +@all",
        is_marked=True,
    ),
    "sign_in_services.md": Recipe(before="cat > /dev/null <<END", given={"]'": "]'\nEND"}),
    "sizes.md#two-servers": Recipe(
        why_not="needs two machines with certificates; tests/stores/test_redis_tls.py connects with TLS"
    ),
    "sizes.md#one-server python3": Recipe(before=A_MACHINE, is_marked=True, is_machine=True),
    "sizes.md#laptop": Recipe(
        before="unset HOLDFAST_DATABASE_URL HOLDFAST_REDIS_URL; export HOLDFAST_DATA_DIR=$PWD/laptop"
    ),
    "sizes.md#four-sizes": Recipe(
        given={"pip install 'holdfast[simulation]'": 'pip install -q "$(echo $DIST/*.whl)[simulation]"'}
    ),
    "sizes.md": Recipe(),
    "upgrading.md#the-way-back": Recipe(),
    "upgrading.md": Recipe(before=FIT + A_WORKER),
}


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


@contextmanager
def postgresql(folder: Path, name: str = "postgresql", right: str = "--replication") -> Iterator[str]:
    """Of Debian, as the account that Debian made for it; with the account and database of engines.md."""
    programs = max(Path("/usr/lib/postgresql").glob("*/bin"))
    port, data = free_port(), folder / name
    data.mkdir()
    shutil.chown(data, "postgres")
    as_postgres = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")

    def run(*words: str) -> None:
        subprocess.run([*as_postgres, *words], check=True, stdout=subprocess.DEVNULL, cwd="/")

    run(str(programs / "initdb"), "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", "-D", str(data))
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c wal_level=logical"
    run(str(programs / "pg_ctl"), "-w", "-D", str(data), "-l", str(data / "log"), "-o", options, "start")
    try:
        at = ("-h", "127.0.0.1", "-p", str(port))
        run(str(programs / "createuser"), *at, right, "holdfast")
        for database in ("holdfast", "home"):
            run(str(programs / "createdb"), *at, "-O", "holdfast", "-E", "UTF8", database)
        yield f"postgresql://holdfast@127.0.0.1:{port}/holdfast"
    finally:
        run(str(programs / "pg_ctl"), "-w", "-D", str(data), "-m", "immediate", "stop")


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


def find_recipe(block: Block) -> Recipe | None:
    """Of the section and the first word of the block, of the section, or of the page."""
    page = block.page.rpartition("/")[2]
    section = f"{page}#{block.section}"
    names = (f"{section} {block.text.split()[0]}", section, page)
    found = next((RECIPES[name] for name in names if name in RECIPES), None)
    return None if found and block.reason and not found.is_marked else found


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
    alone = ("unshare", "--mount") if recipe.is_machine else ()
    done = subprocess.run(
        [*alone, "bash", "-euo", "pipefail", "-c", f"{PREAMBLE}\n{recipe.before}\n{text}"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_S,
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
    paths = sorted(path for path in PAGES.glob("*.md") if path != OUTPUT and only in path.stem)
    return [block for path in paths for block in blocks(path)]


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
    parser.add_argument("--page", default="", help="only pages whose name contains this; writes nothing")
    parser.add_argument("--list", action="store_true", help="runs nothing; the table says so")
    options = parser.parse_args()
    if options.list:
        found = [judge(block, {}, Path()) for block in page_blocks("") if not is_run_here(block)]
        later = [Outcome(block, "not run", NOT_YET) for block in page_blocks("") if is_run_here(block)]
        OUTPUT.write_text(render(sorted(found + later, key=lambda one: (one.block.page, one.block.line))))
        return 0
    with tempfile.TemporaryDirectory(prefix="holdfast-docs-") as name, ExitStack() as stack:
        folder = Path(name)
        folder.chmod(0o755)
        programs = install(folder)
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "PYTHON"))
        }
        env = clean | {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOLDFAST_DATABASE_URL": stack.enter_context(postgresql(folder)),
            "HOLDFAST_REDIS_URL": stack.enter_context(redis(folder)),
            **stack.enter_context(sandbox(folder, programs / "holdfast")),
        }
        env |= build_home(env, stack.enter_context(postgresql(folder, "pod", "--superuser")))
        env |= {"REPOSITORY": str(ROOT), "DIST": str(folder / "dist")}
        work = folder / "work"
        work.mkdir()
        populate(env, work)
        outcomes = [judge(block, env, work) for block in page_blocks(options.page)]
    if not options.page:
        OUTPUT.write_text(render(outcomes))
    return int(any(one.how == "failed" for one in outcomes))


HEAD = """\
# Which commands of these pages are executed

Written by `python -m tools.run_docs`. It installs the wheel into an empty environment, starts PostgreSQL
and Redis of Debian, and runs what no test runs. Tests run on every change. A block without either has its
reason here; all blocks are checked for commands, options, routes and settings that exist
(`tests/tidy/test_blocks.py`).

| page and section | language | blocks | executed by | not run because |
|---|---|--:|---|---|
"""


def render(outcomes: list[Outcome]) -> str:
    rows: Counter[tuple[str, ...]] = Counter()
    for one in outcomes:
        page = one.block.page.rpartition("/")[2]
        section = "" if one.block.page in GENERATED else one.block.section
        by = {"here": "`tools/run_docs.py`", "not run": "–", "failed": "**failed**", "checked": "–"}
        place = f"[{page}]({page}#{section}) {section}" if section else f"[{page}]({page})"
        rows[place, one.block.language, by.get(one.how, f"`{one.how}`"), one.detail] += 1
    return HEAD + "".join(
        f"| {place} | {language} | {count} | {by} | {detail} |\n"
        for (place, language, by, detail), count in rows.items()
    )


if __name__ == "__main__":
    sys.exit(main())
