"""For which request a piece of work is done: for the log and for traces.

A request runs in a task of its own, and so does what it starts: they find it in CURRENT_SCOPE. A batch serves
many requests at once. It runs in an empty context, and finds those of its callers in CURRENT_BATCH: otherwise
its lines would name the request that happened to start it, long after that one was answered.
"""

from collections.abc import MutableMapping, Sequence
from contextvars import Context, ContextVar
from typing import Any

REQUEST_IDS_MAX = 16  # of a batch, in one line of the log

CURRENT_SCOPE: ContextVar[MutableMapping[str, Any] | None] = ContextVar("current_scope", default=None)
# Items of the batch that is under way: item, place and the context of its caller.
CURRENT_BATCH: ContextVar[Sequence[tuple[Any, Any, Context]]] = ContextVar("current_batch", default=())


def find_request_ids() -> list[str]:
    """Of the request that is answered, or of those that wait for the batch; none outside of requests."""
    if (scope := CURRENT_SCOPE.get()) is not None:
        return [scope["state"]["request_id"]]
    scopes = (context.get(CURRENT_SCOPE) for _, _, context in CURRENT_BATCH.get())
    return list(dict.fromkeys(scope["state"]["request_id"] for scope in scopes if scope is not None))
