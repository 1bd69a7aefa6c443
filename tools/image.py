"""Follows deploy/Dockerfile without Docker, and starts what comes out of it.

    python -m tools.image        as root, on Debian with python3-venv: a minute, and the network

Each stage is a layer over the file system of this machine, which stands in for the base image; each step
runs in it. The last stage is then made read-only and runs as the account of the image until its health check
passes, as `docker run --read-only` would. Not covered: the base image, and what Docker itself does.
"""

import fnmatch
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.tidy.deploy_files import DEPLOY, steps

ROOT = Path(__file__).parents[1]
INSIDE = "--inside"  # a mount namespace
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STARTS_WITHIN_S, HEALTHY_EVERY_S = 60, 1
GONE = ("pip", "setuptools", "hatchling")  # what only the build needs


@dataclass
class Stage:
    """The file system after the steps so far, and what the other instructions named."""

    folder: Path
    env: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    user: str = "0:0"
    workdir: str = "/"
    other: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def written(self) -> Path:
        return self.folder / "upper"

    def command(self, words: list[str]) -> list[str]:
        env = [f"{name}={value}" for name, value in self.env.items()]
        start = ("env", "--ignore-environment", f"--chdir={self.workdir}", *env)
        return ["chroot", f"--userspec={self.user}", str(self.root), *start, *words]

    def at(self, path: str) -> Path:
        return self.root / Path(self.workdir, path).relative_to("/")


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def begin(folder: Path) -> Stage:
    """A layer over this machine, with `python` as the base image has it."""
    stage = Stage(folder)
    for place in (stage.root, stage.written, folder / "work"):
        place.mkdir(parents=True)
    layers = f"lowerdir=/,upperdir={stage.written},workdir={folder / 'work'}"
    run("mount", "-t", "overlay", "overlay", "-o", layers, str(stage.root))
    for shared in ("/proc", "/dev"):
        run("mount", "--rbind", shared, f"{stage.root}{shared}")
    shutil.copyfile("/etc/resolv.conf", stage.root / "etc" / "resolv.conf")
    (stage.root / "usr/local/bin/python").unlink(missing_ok=True)
    (stage.root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    return stage


def allowed(source: str) -> bool:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    return any(line.startswith("!") and fnmatch.fnmatch(source, f"{line[1:]}*") for line in lines)


def copy(stage: Stage, stages: dict[str, Stage], words: list[str]) -> None:
    context = ROOT
    if words[0].startswith("--from="):
        context = stages[words.pop(0).removeprefix("--from=")].root
    *sources, target = words
    for source in sources:
        if context == ROOT and not allowed(source):
            raise SystemExit(f"{source} is not sent to the build: Dockerfile.dockerignore")
        place = context / source.lstrip("/")
        into = stage.at(target)
        if place.is_dir():
            ignored = _compiled if context == ROOT else None
            shutil.copytree(place, into, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        else:
            into = into / place.name if target.endswith("/") else into
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(place, into)


def _compiled(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__"]


def follow(work: Path) -> Stage:
    stages: dict[str, Stage] = {}
    stage = Stage(work)
    for word, rest in steps((DEPLOY / "Dockerfile").read_text()):
        if word == "FROM":
            name = rest.partition(" AS ")[2] or "last"
            stage = stages[name] = begin(work / name)
        elif word == "RUN":
            run(*stage.command(["/bin/sh", "-euc", rest]))
        elif word == "COPY":
            copy(stage, stages, rest.split())
        elif word == "ENV":
            for pair in rest.split():
                name, _, value = pair.partition("=")
                stage.env[name] = value.replace("$PATH", stage.env["PATH"])
        elif word == "USER":
            stage.user = rest
        elif word == "WORKDIR":
            stage.workdir = rest
            stage.at(".").mkdir(parents=True, exist_ok=True)
        else:
            stage.other[word] = rest
            continue
        print(f"ok    {word} {rest[:90]}", flush=True)
    return stage


def judge_files(stage: Stage) -> None:
    packages = {path.name for path in stage.written.glob("opt/holdfast/lib/python*/site-packages/*")}
    if left := [name for name in GONE if name in packages]:
        raise SystemExit(f"the image still has {', '.join(left)}")
    files = [path for path in stage.written.rglob("*") if path.is_file() and not path.is_symlink()]
    if theirs := [path for path in files if path.stat().st_uid or path.stat().st_mode & 0o022]:
        raise SystemExit(f"{theirs[0]} can be changed by another account than root")
    size = sum(path.stat().st_size for path in files)
    print(f"ok    {len(files):,} files, {size / 1e6:,.0f} MB above the base; none is its account's to change")


def start(stage: Stage) -> None:
    """Read-only but for the volume and /tmp, as the account of the image; then its health check."""
    for place, owner in (("/tmp", "mode=1777"), (stage.other["VOLUME"], "uid=10001,gid=10001,mode=0700")):
        run("mount", "-t", "tmpfs", "-o", owner, "tmpfs", f"{stage.root}{place}")
    run("mount", "-o", "remount,ro", str(stage.root))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    stage.env["HEALTH_URL"] = stage.env["HEALTH_URL"].replace("8000", port)
    words = [*json.loads(stage.other["ENTRYPOINT"]), *json.loads(stage.other["CMD"])]
    words = [word.replace("8000", port).replace("0.0.0.0", "127.0.0.1") for word in words]
    program = subprocess.Popen(stage.command(words))
    check = stage.command(json.loads(stage.other["HEALTHCHECK"].partition("CMD ")[2]))
    try:
        began = time.monotonic()
        while subprocess.run(check, capture_output=True, check=False).returncode:
            if program.poll() is not None or time.monotonic() > began + STARTS_WITHIN_S:
                raise SystemExit("its health check fails")
            time.sleep(HEALTHY_EVERY_S)
        print(f"ok    healthy after {time.monotonic() - began:.0f} s, as {stage.user}, read-only", flush=True)
    finally:
        with suppress(ProcessLookupError):
            program.terminate()
        code = program.wait()
    if code:
        raise SystemExit(f"it ended with {code}")


def main() -> int:
    if INSIDE in sys.argv:
        work = Path(sys.argv[-1])
        run("mount", "-t", "tmpfs", "tmpfs", str(work))
        stage = follow(work)
        judge_files(stage)
        start(stage)
        return 0
    # The mounts end with the namespace; outside of it the folder is empty. It is never deleted with its
    # contents, because /dev would be among them.
    work = Path(tempfile.mkdtemp(prefix="holdfast-image-"))
    words = ("unshare", "--mount", sys.executable, "-m", "tools.image", INSIDE, str(work))
    done = subprocess.run(words, cwd=ROOT, check=False)
    work.rmdir()
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
