"""python -m holdfast"""

import sys

from holdfast.cli.main import main
from holdfast.lean_import import load_structlog

if sys.argv[1:2] in (["web-worker"], ["sandbox-worker"], ["jobs"]):  # children that stay
    load_structlog()
main()
