"""What must be true of the image: of its settings, and of its files compared with those of its base."""

import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ACCOUNT = 10001
PROGRAM = Path("opt/holdfast")
# Where the account writes: the data folder and the one for backups, both empty in the image.
ITS_FOLDERS = (Path("var/lib/holdfast"), Path("backups"))
# What `useradd` and `groupadd` change.
ACCOUNT_FILES = re.compile(r"(?:etc/(?:passwd|group|g?shadow|sub[ug]id)-?|var/log/(?:lastlog|faillog))")
BUILDERS = re.compile(r"(?:.*-)?(?:cc|c\+\+|gcc|g\+\+|clang|tcc|ld|as|make|cmake|cargo|rustc|go)(?:-[\d.]+)?")
BUILD_PACKAGES = ("editables", "hatchling", "pip", "setuptools", "wheel")
PRIVATE_KEY = re.compile(rb"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----\s+[A-Za-z0-9+/=]{32}")
OF_ITS_OWNER = stat.S_ISUID | stat.S_ISGID  # the image takes these bits from programs of its base
SECRET_NAME = re.compile(r"SECRET|PASSWORD|TOKEN|_KEY$|DATABASE_URL|REDIS_URL")


def weak_config(config: dict[str, Any]) -> Iterator[str]:
    """`config` is what the image says about how it is run, under the names that Docker gives them."""
    if config.get("User") != f"{ACCOUNT}:{ACCOUNT}":
        yield f"it runs as {config.get('User') or 'root'}"
    if config.get("Entrypoint") != ["holdfast"]:
        yield f"its entry point is {config.get('Entrypoint')}"
    if config.get("Cmd", [])[:1] != ["serve"]:
        yield f"it starts {config.get('Cmd')}"
    if config.get("Healthcheck", {}).get("Test", [])[:1] != ["CMD"]:
        yield "it has no health check that runs without a shell"
    if [*config.get("Volumes", {})] != ["/var/lib/holdfast"]:
        yield f"its volumes are {[*config.get('Volumes', {})]}"
    for name in (one.partition("=")[0] for one in config.get("Env", ())):
        if SECRET_NAME.search(name):
            yield f"{name} is in its environment"


def paths(root: Path) -> Iterator[Path]:
    """Everything in a folder, relative to it, without following links."""
    return (path.relative_to(root) for path in sorted(root.rglob("*")))


def added(root: Path, base: Path) -> Iterator[Path]:
    """What the base has not, or has with another owner, mode, size or time; no folders that it has."""
    for path in paths(root):
        ours = (root / path).lstat()
        try:
            other = (base / path).lstat()
        except FileNotFoundError:
            yield path
            continue
        if not stat.S_ISDIR(ours.st_mode) and facts_of(ours) != facts_of(other):
            yield path


def facts_of(one: Any) -> tuple[int, ...]:
    return one.st_mode & ~OF_ITS_OWNER, one.st_uid, one.st_gid, one.st_size, int(one.st_mtime)


def weak_files(root: Path, base: Path) -> Iterator[str]:
    for path in added(root, base):
        yield from (f"/{path}: {complaint}" for complaint in weak_addition(root, path))
    for path in paths(root):
        if is_writable((root / path).lstat()) and path not in ITS_FOLDERS:
            yield f"/{path}: the account can write it"
        if gives_rights(root / path):
            yield f"/{path}: it runs with rights that its caller does not have"
        if path.parent.name in ("bin", "sbin") and BUILDERS.fullmatch(path.name):
            yield f"/{path}: a program that builds programs"


def weak_addition(root: Path, path: Path) -> Iterator[str]:
    one = (root / path).lstat()
    is_ours = path.is_relative_to(PROGRAM)
    if not (is_ours or path in ITS_FOLDERS or ACCOUNT_FILES.fullmatch(str(path))):
        yield "the base does not have it, and the program does not need it"
    if is_ours and (one.st_uid or one.st_gid):
        yield "it does not belong to root"
    if stat.S_ISREG(one.st_mode) and PRIVATE_KEY.search((root / path).read_bytes()):
        yield "it has a private key"
    name = re.match(r"([\w.]+?)-[\d.]+\.dist-info$", path.name)
    if name and name[1] in BUILD_PACKAGES:
        yield "only the build needs it"


def gives_rights(path: Path) -> bool:
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        return False
    return bool(mode & OF_ITS_OWNER) or (
        sys.platform == "linux" and "security.capability" in os.listxattr(path)
    )


def is_writable(one: Any, account: int = ACCOUNT) -> bool:
    """By the account; not links, devices and folders like /tmp."""
    if not (stat.S_ISREG(one.st_mode) or stat.S_ISDIR(one.st_mode)) or one.st_mode & stat.S_ISVTX:
        return False
    return bool(
        one.st_uid == account
        or (one.st_gid == account and one.st_mode & stat.S_IWGRP)
        or one.st_mode & stat.S_IWOTH
    )


def size_mb(root: Path, only: frozenset[Path] | None = None) -> float:
    """Of its files, each once; all of them, or some."""
    sizes = {}
    for path in paths(root) if only is None else only:
        one = (root / path).lstat()
        if stat.S_ISREG(one.st_mode):
            sizes[one.st_ino] = one.st_size
    return sum(sizes.values()) / 1e6
