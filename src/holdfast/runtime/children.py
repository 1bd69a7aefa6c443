"""Child processes: the command line, the environment, and how the parent learns that a child is ready."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.config import Config, secret_file_names


def build_command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "holdfast", *words)


def build_environment(config: Config) -> dict[str, str]:
    """Added to our own environment. A secret from a file is not in it: the child reads the file itself."""
    values = {
        "HOLDFAST_DATABASE_URL": config.database_url,
        "HOLDFAST_REDIS_URL": config.redis_url,
        "HOLDFAST_DATA_DIR": str(Path(config.data_dir).absolute()),
        "HOLDFAST_POSTGRES_POOL_MAX": str(config.postgres_pool_max),
        "HOLDFAST_GATEWAY": config.gateway,
        **({"HOLDFAST_GATEWAY_URL": config.gateway_url} if config.gateway_url else {}),
        **({"HOLDFAST_GATEWAY_SECRET": config.gateway_secret} if config.gateway_secret else {}),
        **({"HOLDFAST_MAIL_PAGE": "1"} if config.mail_page else {}),
        # A worker has few threads; without this each costs an arena of its own. What is free at the end of an
        # arena goes back: by itself the limit rises with the largest block that was ever freed.
        "MALLOC_ARENA_MAX": "2",
        "MALLOC_TRIM_THRESHOLD_": "131072",
    }
    in_files = {name for file, name in secret_file_names().items() if os.environ.get(file)}
    return {name: value for name, value in values.items() if name not in in_files}


def read_number(file: Path) -> int:
    """0 when it is not there yet, or not written yet."""
    try:
        return int(file.read_text() or 0)
    except FileNotFoundError:
        return 0


def says_ready(file: Path) -> Callable[[int], Any]:
    async def ready(process_id: int) -> bool:
        return read_number(file) == process_id

    return ready
