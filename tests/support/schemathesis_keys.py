"""Read by schemathesis, not by pytest: every request gets an Idempotency-Key of its own.

Left to itself it repeats a few keys with other bodies, and is rightly refused.
"""

import uuid
from typing import Any

import schemathesis


@schemathesis.hook
def before_call(
    context: schemathesis.HookContext, case: "schemathesis.Case[Any]", kwargs: dict[str, Any]
) -> None:
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
