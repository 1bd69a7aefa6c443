"""Commands of `holdfast`, one module per group. Does not import rich, so that children start small."""

import json


def print_json(page: object) -> None:
    """One line of JSON, for programs that read the output of a command."""
    print(json.dumps(page, ensure_ascii=False, default=str), flush=True)
