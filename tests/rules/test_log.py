"""A line of the log is one JSON object, with the request it belongs to."""

import json
import subprocess
import sys

import pytest

from holdfast.tickets.ticket import Ticket, TicketKey, build_link

LINKS = [
    build_link(TicketKey(1, bytes(32), bytes([n]) * 32, 0.0), Ticket(7, 2**45 + n, 1)) for n in range(20)
]
PROGRAM = """
import logging
import structlog
from holdfast.engines.request_context import CURRENT_SCOPE
from holdfast.web.log import set_up

set_up()
CURRENT_SCOPE.set({"state": {"request_id": "r1"}})
structlog.get_logger("holdfast.test").warning("seats", count=2, odd={1, 2}.__class__)
logging.getLogger("uvicorn.error").info("started %s", "here")
structlog.get_logger("holdfast.test").debug("too small to tell")
try:
    1 / 0
except ZeroDivisionError:
    structlog.get_logger("holdfast.test").exception("it broke")
"""


def test_every_line_is_json_with_its_request() -> None:
    # A process of its own: logging is set up once for a whole process.
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ran.stderr.splitlines()]

    assert [line["event"] for line in lines] == ["seats", "started here", "it broke"]
    assert {line["request_id"] for line in lines} == {"r1"}
    assert lines[0]["count"] == 2
    assert lines[0]["level"] == "warning"
    assert lines[0]["timestamp"].endswith("Z")
    assert "ZeroDivisionError" in lines[2]["exception"]


FORMAT_PROGRAM = """
import sys
import structlog
from holdfast.web.log import set_up

sys.stderr.isatty = lambda: {is_terminal}
set_up("{log_format}")
structlog.get_logger("holdfast.test").warning("seats", count=2)
"""


@pytest.mark.parametrize(
    "is_terminal, log_format, is_json",
    [(True, "", False), (True, "json", True), (False, "text", False)],
)
def test_a_setting_decides_the_format(is_terminal: bool, log_format: str, is_json: bool) -> None:
    program = FORMAT_PROGRAM.format(is_terminal=is_terminal, log_format=log_format)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stderr.startswith("{") == is_json


LINKS_PROGRAM = """
import logging, sys
import structlog
from holdfast.web.log import set_up

sys.stderr.isatty = lambda: {for_people}
set_up()
log = structlog.get_logger("holdfast.test")
for link in {links}:
    log.info("slow request", method="GET", path=f"/tickets/{{link}}", status=200)
    logging.getLogger("uvicorn.error").warning("GET /tickets/%s/code", link)
    try:
        raise ValueError(f"https://box.office/tickets/{{link}}?again=1")
    except ValueError:
        log.exception("a request broke", path=f"/tickets/{{link}}")
    log.info("slow request", method="POST", path=f"/link/{{link}}", status=303)
log.info("request", path="/api/v1/tickets/ksiouch7ttlpmlqsxtnq")
"""


def test_a_ticket_s_link_which_is_the_ticket_is_in_no_line() -> None:
    for for_people in (False, True):
        program = LINKS_PROGRAM.format(links=LINKS, for_people=for_people)
        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

        assert not [link for link in LINKS if link in ran.stderr]
        assert ran.stderr.count("/tickets/-") >= 4 * len(LINKS)
        assert "/tickets/-/code" in ran.stderr
        assert ran.stderr.count("/link/-") >= len(LINKS)
        assert "/api/v1/tickets/ksiouch7ttlpmlqsxtnq" in ran.stderr
