"""The span of a request, if traces are on and the request is sampled: engines/tracing.py.

HOLDFAST_TRACES_RATIO decides. With HOLDFAST_TRACES_PARENTS a traceparent header decides instead, but only
if one of our proxies sent it: a client that could have its requests traced could have all of them traced.
"""

from starlette.types import Scope

from holdfast.engines.tracing import Span, tracer
from holdfast.web.card_number import without_card_numbers
from holdfast.web.routing import Route

FROM_PROXY = "holdfast.from_proxy"  # in the scope: the header may be believed (connections.py)
CLIENT_LEFT = 499  # as nginx logs a client that closed the connection before it had its answer
PROBES = "health"  # tag of routes that are called every few seconds by machines
IDS = {"show": "holdfast.show_id", "booking": "holdfast.booking_id"}  # parameters of paths that spans have


def begin_span(scope: Scope, route: Route | None) -> None:
    """The request is the current span from here on, or there is none. Streams have none: they last hours."""
    state = scope["state"]
    if route is None or route.asgi is not None or route.tag == PROBES:
        tracer.skip_request()
        return
    given = state["headers"].get(b"traceparent") if scope.get(FROM_PROXY) else None
    name = f"{route.method} {route.full_path}"
    span = tracer.begin_request(name, None if given is None else given.decode("latin-1"))
    if span is None:
        return
    state["span"] = span
    span.attributes = {
        "http.request.method": route.method,
        "http.route": route.full_path,
        "holdfast.request_id": str(without_card_numbers(state["request_id"])),  # a client may have chosen it
    }
    for name, value in scope["path_params"].items():
        if name in IDS:
            span.attributes[IDS[name]] = value


def end_span(scope: Scope, status: int) -> None:
    span: Span | None = scope["state"].get("span")
    if span is not None:
        span.attributes["http.response.status_code"] = status
        span.is_failed = status >= 500
        tracer.end(span)
