"""`holdfast tickets rotate`: a new key, and every ticket sold before stays good (R30, T1)."""

import re
from pathlib import Path

from tests.support.cli_process import run_holdfast


async def test_a_key_is_rotated_by_a_command(tmp_path: Path) -> None:
    """That the tickets of the old one stay good is shown in tests/stores/test_tickets.py."""
    await run_holdfast("migrate", "--data", str(tmp_path))

    first, second = [await run_holdfast("tickets", "rotate", "--data", str(tmp_path)) for _ in range(2)]

    assert (first.code, second.code) == (0, 0), (first, second)
    assert [re.findall(r"key (\d+) signs", one.output) for one in (first, second)] == [["2"], ["3"]]
