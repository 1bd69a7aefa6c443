"""A line of the log is one JSON object, with the request it belongs to."""

import json
import subprocess
import sys

PROGRAM = """
import logging
import structlog
from holdfast.web.log import REQUEST_ID, set_up

set_up()
REQUEST_ID.set("r1")
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
