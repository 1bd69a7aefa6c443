"""One line of JSON, for programs that read what a command says; without rich, so that they start small."""

import json


def print_json(page: object) -> None:
    print(json.dumps(page, ensure_ascii=False, default=str), flush=True)
