"""Builds the image without a daemon and without a registry, runs it, and checks what is in it.

    python -m tools.image        minutes; as root, on Debian 12 with buildah and mmdebstrap; uses the network

packages of Debian ─► base, in place of python:3.11-slim-bookworm ─┐
requirements/image.txt ─► wheels, compared with their hashes ──────┴─► deploy/Dockerfile, by buildah ─► image
image ─► its settings ─► its files, compared with those of the base ─► containers that run it

Nothing stays. A container is here what the kernel makes of one: namespaces for mounts, processes and the
network, a read-only file system, and the image's account without a way to gain rights. Limits of system
calls and of memory are missing. The rules are in tools/image_checks.py.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.image_checks import ACCOUNT, added, size_mb, weak_config, weak_files
from tools.refused import Refused, exit_code

ROOT = Path(__file__).parents[1]
DOCKERFILE = "deploy/Dockerfile"
# What the base has beside the packages without which no Debian runs. `python` is a name of python3 there.
PACKAGES = "ca-certificates,python3,python3-venv,python-is-python3"
# Files that the build mounts over: without them it would leave empty ones in the image.
MOUNTED_OVER = 'touch "$1"/etc/hosts "$1"/etc/pip.conf'
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
WITHIN_S = 120
# Files of the image with `ldd`, which names the libraries that the base lacks.
FIND_LIBRARIES = r"""
find /opt/holdfast -type f \( -name '*.so' -o -name '*.so.*' -o -path '*/bin/*' \) -exec ldd {} + \
    2>/dev/null | grep 'not found' | sort | uniq -c || true
"""
PREPARE = r"""
cd "$1"
shift
mount --bind . "$PWD"
cd "$PWD"
mount --options remount,bind,ro .
mount --types proc proc proc
mount --types tmpfs --options mode=1777 tmpfs tmp
mount --types tmpfs --options uid=$ACCOUNT,gid=$ACCOUNT,mode=0700 tmpfs var/lib/holdfast
devices=$(mktemp --directory --tmpdir=tmp)
mount --types tmpfs --options mode=0755 tmpfs "$devices"
for one in null zero full random urandom; do
    touch "$devices/$one"
    mount --bind /dev/$one "$devices/$one"
done
mkdir --mode=1777 "$devices/shm"
ln --symbolic /proc/self/fd "$devices/fd"
mount --move "$devices" dev
rmdir "$devices"
ip link set lo up
exec setpriv --no-new-privs chroot --userspec=$ACCOUNT:$ACCOUNT --groups= . \
    /usr/bin/env --ignore-environment --chdir=/var/lib/holdfast "$@"
"""


@dataclass(frozen=True)
class Image:
    root: Path  # its files, and those of its base
    base: Path
    config: dict[str, Any]

    @property
    def settings(self) -> list[str]:
        return list(self.config["Env"])


# ── Building ──────────────────────────────────────────────────────────────────────────


def run(*words: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(map(str, words[:3]))} …: {(done.stdout + done.stderr)[-3000:].strip()}")
    return done.stdout


class Buildah:
    """With images and containers in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        places = (f"--root={folder / 'images'}", f"--runroot={folder / 'run'}")
        self.words = ("buildah", *places, "--storage-driver=vfs")

    def __call__(self, action: str, *words: str | Path) -> str:
        return run(*self.words, action, *words).strip()

    def mounted(self, image: str) -> Path:
        return Path(self("mount", self("from", "--pull-never", image)))


def make_base(buildah: Buildah, folder: Path, name: str) -> None:
    packed, sources = folder / "base.tar", sorted(Path("/etc/apt").glob("sources.list.d/*.sources"))
    lists = [*sources, *(one for one in [Path("/etc/apt/sources.list")] if one.exists())]
    wanted = ("--variant=minbase", f"--include={PACKAGES}", f"--customize-hook={MOUNTED_OVER}")
    run("mmdebstrap", *wanted, "bookworm", packed, *lists)
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, packed, "/")
    buildah("config", "--env", f"PATH={PATH}", container)
    buildah("commit", "--quiet", "--format=docker", "--rm", container, name)
    packed.unlink()


def build(buildah: Buildah, folder: Path) -> Image:
    wheels, settings = folder / "wheels", folder / "pip.conf"
    base, name = "localhost/holdfast-base", "localhost/holdfast"
    make_base(buildah, folder, base)
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
    lock = ROOT / "requirements" / "image.txt"
    run(*pip, "--require-hashes", "--only-binary=:all:", "--dest", wheels, "--requirement", lock)
    settings.write_text("[global]\nno-index = true\nfind-links = /mnt\n")
    buildah(
        "bud",
        *("--quiet", "--format=docker", "--isolation=chroot", "--pull-never"),
        *(f"--volume={wheels}:/mnt:ro", f"--volume={settings}:/etc/pip.conf:ro"),
        *(f"--file={DOCKERFILE}", f"--ignorefile={DOCKERFILE}.dockerignore"),
        *(f"--build-arg=PYTHON={base}", f"--tag={name}", "."),
    )
    inspected = json.loads(buildah("inspect", "--type=image", name))
    return Image(buildah.mounted(name), buildah.mounted(base), inspected["Docker"]["config"])


# ── Running ───────────────────────────────────────────────────────────────────────────


class Container:
    def __init__(self, image: Image, *words: str) -> None:
        spaces = ("--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child")
        inside = ("bash", "-euc", PREPARE, "bash", str(image.root), *image.settings, *words)
        self.image = image
        self.process = subprocess.Popen(
            ["unshare", *spaces, *inside],
            env={"PATH": PATH, "ACCOUNT": str(ACCOUNT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def first(self) -> str:
        """The process that is number 1 inside, by its number here; "" before it begins and after it ended."""
        holder = self.process.pid
        return Path(f"/proc/{holder}/task/{holder}/children").read_text().strip()

    def end(self) -> tuple[int, str]:
        """Exit code and output, after what it does on SIGTERM."""
        os.kill(int(self.first), signal.SIGTERM)
        return self.wait()

    def wait(self) -> tuple[int, str]:
        try:
            text, _ = self.process.communicate(timeout=WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            text, _ = self.process.communicate()
            raise Refused(f"it did not end within {WITHIN_S} s: {text[-2000:]}") from None
        return self.process.returncode, text

    def is_healthy(self) -> bool:
        """By the health check of the image."""
        if not self.first:
            return False
        spaces = ("--mount", "--pid", "--net", "--ipc", "--uts", "--root")
        account = (f"--setuid={ACCOUNT}", f"--setgid={ACCOUNT}")
        enter = ("setpriv", "--no-new-privs", "nsenter", f"--target={self.first}", *spaces, *account)
        check = self.image.config["Healthcheck"]["Test"][1:]
        words = [*enter, "/usr/bin/env", "--ignore-environment", *self.image.settings, *check]
        return subprocess.run(words, capture_output=True, check=False).returncode == 0


def output_of(image: Image, *words: str) -> str:
    code, text = Container(image, *words).wait()
    if code:
        raise Refused(f"{' '.join(words[:2])}: exit code {code}: {text[-2000:]}")
    return text.strip()


def run_until_healthy(image: Image, *words: str) -> str:
    """Starts it as `docker run` would, waits for its health check, and ends it."""
    container, began = Container(image, *image.config["Entrypoint"], *words), time.monotonic()
    while not container.is_healthy():
        if container.process.poll() is not None or time.monotonic() - began > WITHIN_S:
            container.process.kill()
            raise Refused(f"{' '.join(words)}: not healthy: {container.process.communicate()[0][-2000:]}")
        time.sleep(0.2)
    took = time.monotonic() - began
    code, text = container.end()
    if code:
        raise Refused(f"{' '.join(words)}: exit code {code} after SIGTERM: {text[-2000:]}")
    return f"{' '.join(words)}: healthy after {took:.1f} s, exit code 0 after SIGTERM"


def check(image: Image) -> Iterator[str]:
    if wrong := [*weak_config(image.config), *weak_files(image.root, image.base)]:
        raise Refused("\n      ".join(wrong))
    yield f"runs as {image.config['User']}, no secrets, no tools of a build, no setuid program"
    ours = frozenset(added(image.root, image.base))
    both, program = size_mb(image.root), size_mb(image.root, ours)
    yield f"{both:,.0f} MB: base {both - program:,.0f}, program {program:,.0f} in {len(ours):,} files"
    yield output_of(image, "holdfast", "--version")
    if missing := output_of(image, "sh", "-c", FIND_LIBRARIES):
        raise Refused(f"the base lacks libraries: {missing}")
    yield "all libraries are there"
    yield run_until_healthy(image, *image.config["Cmd"])
    yield run_until_healthy(image, "demo", "--host", "0.0.0.0")


@contextmanager
def built(folder: Path) -> Iterator[Image]:
    buildah = Buildah(folder)
    try:
        yield build(buildah, folder)
    finally:
        buildah("rm", "--all")  # unmounts, too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.parse_args()
    for program in ("buildah", "mmdebstrap"):
        if shutil.which(program) is None or os.geteuid() != 0:
            raise Refused(f"as root, with {program}: apt install --no-install-recommends buildah mmdebstrap")
    with tempfile.TemporaryDirectory(prefix="holdfast-image-") as name, built(Path(name)) as image:
        for line in check(image):
            print(f"ok    {line}", flush=True)


if __name__ == "__main__":
    sys.exit(exit_code(main))
