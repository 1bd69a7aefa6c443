"""How a command ends: expected trouble is one line on stderr and exit code 2; a traceback is always a bug."""

import sys
from collections.abc import Callable
from typing import NoReturn

from holdfast.engines.errors import EngineDown, OperatorError
from holdfast.errors import Refusal

EXPECTED = 2  # trouble that the operator can put right


def run_and_exit(command: Callable[[], object]) -> NoReturn:
    try:
        command()
    except OperatorError as trouble:
        _refuse(str(trouble))
    except EngineDown as down:
        _refuse(f"{down}: is the engine up? `holdfast doctor` looks")
    except Refusal as refusal:
        details = ", ".join(f"{name} {value}" for name, value in refusal.details.items())
        _refuse(f"{refusal.title}: {details}")
    except SystemExit as leaving:
        if isinstance(leaving.code, str):  # a setting that cannot be parsed
            _refuse(leaving.code)
        raise
    sys.exit(0)


def _refuse(line: str) -> NoReturn:
    if line:
        print(f"holdfast: {line}", file=sys.stderr)
    sys.exit(EXPECTED)
