"""Shell commands of a page of the docs, for the test that runs them."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def documented_commands(page: str, heading: str) -> list[str]:
    """The blocks under this heading, in order."""
    _, _, rest = (DOCS / page).read_text().partition(f"\n## {heading}\n")
    section, *_ = rest.split("\n## ")
    found = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert found, f"{page} has no commands under {heading}"
    return found
