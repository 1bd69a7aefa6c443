"""Why a figure cannot be had: a wrong result, or a program that is not installed."""

import os
import shutil

# The Debian package and the names of its program. nginx is outside the PATH of a user who is not root.
PROGRAMS = {
    "wrk": ("wrk", ("wrk",)),
    "nginx": ("nginx-light", ("nginx", "/usr/sbin/nginx")),
    "chromium": ("chromium", ("chromium", "chromium-browser")),
    "redis-benchmark": ("redis-tools", ("redis-benchmark", "valkey-benchmark")),
}


class BenchError(Exception):
    """The bench got a wrong result; the message is one line. Exit code 1."""


class MissingProgramError(BenchError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is not installed (Debian: apt install {PROGRAMS[name][0]})")


def find_program(name: str) -> str | None:
    """Its path. The environment variable CHROMIUM names another browser, as for the tests."""
    if name == "chromium" and (chosen := os.environ.get("CHROMIUM")):
        return chosen
    return next((path for each in PROGRAMS[name][1] if (path := shutil.which(each))), None)


def require_program(name: str) -> str:
    path = find_program(name)
    if path is None:
        raise MissingProgramError(name)
    return path


def require(claim: bool, message: str) -> None:
    """Raise a BenchError unless the claim holds."""
    if not claim:
        raise BenchError(message)
