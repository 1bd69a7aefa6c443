"""Secrets from files: HOLDFAST_<NAME>_FILE holds the path of a file with the value of HOLDFAST_<NAME>.

Containers and systemd mount secrets as files. Users who may inspect a process can read its environment, which
is part of crash reports, too; a file has an owner.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path

from holdfast.config import Config, secret_file_names
from holdfast.engines.errors import OperatorError

SECRET_BYTES_MAX = 65_536
LOOK_PAUSE_S = 1.0


def load_config(env: Mapping[str, str]) -> Config:
    """Settings of the environment, and of the files that it names."""
    return Config.from_env(read_secret_files(env))


def read_secret_files(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with the contents of these files instead of their names; an empty name is none."""
    found = dict(env)
    for file_name, name in secret_file_names().items():
        path = found.pop(file_name, "")
        if not path:
            continue
        if name in found:
            raise OperatorError(f"{name} and {file_name} are both set: unset one of them")
        found[name] = _read(file_name, path)
    return found


class SecretWatch:
    """Notices that files of secrets have other contents than before."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._paths = [Path(env[name]) for name in secret_file_names() if env.get(name)]
        self._seen = self._fingerprint()

    async def changed(self, pause_s: float = LOOK_PAUSE_S) -> None:
        """Returns after two looks that see the same new contents: a file may be written meanwhile."""
        before = self._seen
        while (now := self._fingerprint()) == self._seen or now != before:
            before = now
            await asyncio.sleep(pause_s)
        self._seen = now

    def _fingerprint(self) -> bytes:
        """A file that is missing for a moment, while it is replaced, counts as empty."""
        summed = hashlib.sha256()
        for path in self._paths:
            summed.update(hashlib.sha256(_read_bytes(path)).digest())
        return summed.digest()


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(SECRET_BYTES_MAX + 1)
    except OSError:
        return b""


def _read(file_name: str, path: str) -> str:
    """Without the line end that editors and `echo` add. No message has any part of the value."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(SECRET_BYTES_MAX + 1)
        text = data.decode().rstrip("\r\n")
    except OSError as error:
        raise OperatorError(f"{file_name}: cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise OperatorError(f"{file_name}: {path} is not a text in UTF-8") from None
    if len(data) > SECRET_BYTES_MAX:
        raise OperatorError(f"{file_name}: {path} is longer than {SECRET_BYTES_MAX} bytes")
    if not text:  # a mount that failed must not silently switch mail or webhooks off
        raise OperatorError(f"{file_name}: {path} is empty; unset {file_name} if there is no such secret")
    return text
