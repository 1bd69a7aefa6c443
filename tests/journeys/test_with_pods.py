"""The run with `--pods`, which CONTRIBUTING.md names: every time for one short story, by hand for all."""

import asyncio
import sys

STORY = "tests/journeys/test_free_show.py"


async def test_a_story_has_the_same_end_in_a_house_with_pods() -> None:
    """R36. Its shows are spread: each pod has sold some, and home too."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-q", "--pods", "3", "-p", "no:cacheprovider", STORY),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()

    assert process.returncode == 0, output.decode()
    for name in ("home", "east", "west", "north"):
        (line,) = [line for line in output.decode().splitlines() if line.strip().startswith(f"{name}:")]
        assert " 0 shows" not in line
