"""One line a thing that happened, with the id of the request it happened in.

A line of a batch has the ids of all requests in it; one of a sampled request has the id of its trace, too.
On a terminal the lines are for people; everywhere else they are JSON, one object a line, for machines.
HOLDFAST_LOG_FORMAT decides otherwise.
What the libraries log (uvicorn, asyncio) goes the same way. Card numbers are taken out of every line, and so
are links to tickets and those in mails: a link is the ticket, or opens the account.
"""

import logging
import re
import sys
from typing import Any

import msgspec
import structlog

from holdfast.engines.request_context import REQUEST_IDS_MAX, find_request_ids
from holdfast.engines.tracing import find_trace_id
from holdfast.web.card_number import find_long_number, without_card_numbers

SECRET_LINK = re.compile(r"/(tickets|link)/[\w-]{40,}", re.ASCII)  # 43 and more; a ticket's id has 20

_encode = msgspec.json.Encoder(enc_hook=repr).encode


def set_up(log_format: str = "", *, level: str = "INFO") -> None:
    """Once, at the start of a process. `log_format`: json or text; empty: text on a terminal, else JSON."""
    for_people = log_format == "text" or (not log_format and sys.stderr.isatty())
    shared: list[Any] = [
        with_request,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    output = logging.StreamHandler(sys.stderr)
    output.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_last(for_people))
    )
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # a dozen lines a printed ticket


def with_request(_logger: Any, _method: str, line: Any) -> Any:
    """A batch of one request has its id like any other line; one of many has a list."""
    ids = find_request_ids()
    if len(ids) == 1:
        line["request_id"] = ids[0]
    elif ids:
        line["request_ids"] = ids[:REQUEST_IDS_MAX]
    if (trace_id := find_trace_id()) is not None:
        line["trace_id"] = trace_id
    return line


def _last(for_people: bool) -> list[Any]:
    bare = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if for_people:
        # Without local variables: they hold tokens and passwords.
        plain = structlog.dev.plain_traceback
        return [bare, structlog.dev.ConsoleRenderer(exception_formatter=plain), people_line]
    return [bare, structlog.processors.format_exc_info, json_line]


def json_line(_logger: Any, _method: str, line: Any) -> str:
    encoded = _encode(line)
    if find_long_number(encoded) is not None:  # once more, encoded: an object may hide one in its repr
        encoded = _encode(without_card_numbers(msgspec.json.decode(encoded)))
    return without_ticket_links(encoded.decode())


def people_line(_logger: Any, _method: str, line: str) -> str:
    redacted: str = without_card_numbers(line)
    return without_ticket_links(redacted)


def without_ticket_links(line: str) -> str:
    return SECRET_LINK.sub(r"/\1/-", line)
