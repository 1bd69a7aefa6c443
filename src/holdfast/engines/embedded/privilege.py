"""Who a child process runs as, and that it dies with us.

PostgreSQL refuses to run as root. Started by root we give the child an unprivileged user; where that user
cannot get at the program or the data (a checkout in /root, a private home), the child keeps one capability,
to pass and read folders that are not its own, instead of our changing the rights of other people's folders.
It never keeps the capability to write them, and none of its own children can become more than it is.
"""

import ctypes
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.engines.errors import OperatorError

PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2
CAP_DAC_READ_SEARCH = 2
CAPABILITIES_MAX = 64  # 41 today; one that the kernel does not know is an error that changes nothing
CAPABILITY_VERSION_3 = 0x20080522

# Loaded before any fork: between fork and exec nothing may be imported.
LIBC = ctypes.CDLL(None, use_errno=True)
IS_LINUX = sys.platform == "linux"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: int
    gid: int
    capability: int | None = None  # needed to reach what the user's own rights do not


def unprivileged(program: Path, folder: Path) -> User | None:
    """Whom to run `program` on `folder` as: None means as ourselves, which is right unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid == 0:
            continue
        for capability in (None, CAP_DAC_READ_SEARCH):
            user = User(name, entry.pw_uid, entry.pw_gid, capability)
            if _reaches(user, program, folder):
                return user
    raise OperatorError(
        f"started as root, and no unprivileged user can reach {folder} and {program}: run as a normal user, "
        f"choose a folder others may pass with --data, or `chmod -R o+rX {program.parent.parent}`"
    )


def child_setup(user: User | None, death_signal: int) -> Callable[[], None]:
    """What a child does between fork and exec."""
    parent_id = os.getpid()

    def set_up() -> None:
        if user is not None:
            _become(user)
        # After the change of user, which would clear it.
        if IS_LINUX:
            LIBC.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
            if os.getppid() != parent_id:  # we died in between, and the child would not notice
                os._exit(1)

    return set_up


def _become(user: User) -> None:
    if IS_LINUX:
        _limit_children(user.capability)
    if user.capability is not None:
        LIBC.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setgid(user.gid)
    os.setuid(user.uid)
    if user.capability is not None:
        _keep_only(user.capability)


def _limit_children(capability: int | None) -> None:
    """Nothing that it starts, a program with the setuid bit included, gets more than this capability."""
    for one in range(CAPABILITIES_MAX):
        if one != capability:
            LIBC.prctl(PR_CAPBSET_DROP, one, 0, 0, 0)
    LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def _keep_only(capability: int) -> None:
    mask = 1 << capability
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)  # effective, permitted, inheritable; twice
    if LIBC.capset(header, sets) or LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot keep the capability to read the data folder")


def _reaches(user: User, program: Path, folder: Path) -> bool:
    """Tried, not computed: only the kernel knows about ACLs, capabilities and mounts."""
    if user.capability is not None and not IS_LINUX:
        return False
    share = program.parent.parent / "share" / "postgres.bki"
    reads = str(share if share.exists() else program)
    probe = ("/bin/sh", "-c", 'cd -- "$1" && : < "$2" && exec "$3" --version', "sh", str(folder), reads)
    try:
        done = subprocess.run(
            (*probe, str(program)),
            preexec_fn=child_setup(user, signal.SIGKILL),
            cwd="/",
            capture_output=True,
            timeout=10,
            check=False,
        )
    except (subprocess.SubprocessError, OSError):
        return False
    return done.returncode == 0
