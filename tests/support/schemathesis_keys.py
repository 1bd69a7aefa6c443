"""Read by schemathesis, not by pytest: every request gets an Idempotency-Key of its own.

Left to itself it repeats a few keys with other bodies, and is rightly refused.
"""

import uuid
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis.configuration import set_hypothesis_home_dir

# Its tables of Unicode take 1.7 s to make: once for all runs, not once per folder that it starts in.
set_hypothesis_home_dir(Path(__file__).parents[2] / ".hypothesis")


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, Any]
) -> None:
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
