"""Commands of the documentation, pasted into a shell."""

import asyncio
import os
import sys
from pathlib import Path

from tests.support import curl


async def pasted(lines: str, path: str, folder: Path) -> str:
    """The output of a shell that runs these lines in a folder of its own."""
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", lines),
        env={**os.environ, "PATH": path, "no_proxy": "127.0.0.1"},
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(shell.communicate(), 60)
    assert shell.returncode == 0
    return output.decode()


def path_with_own_curl(folder: Path) -> str:
    """A PATH on which curl is ours: a machine with nothing but Python must pass too."""
    ours = folder / "bin" / "curl"
    ours.parent.mkdir()
    ours.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{curl.__file__}" "$@"\n')
    ours.chmod(0o755)
    return f"{ours.parent}:{os.environ['PATH']}"
