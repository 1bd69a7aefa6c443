"""Undo the mend of a known defect, one at a time, and check that its test fails.

    python -m tools.defects [NAME …]          these defects, or all: about half an hour
    python -m tools.defects --sound [NAME …]  the same tests on unchanged code: they pass

Each defect was once reported; its mutant brings it back. Works as tools/mutants.py does.
"""

import sys

from tools.defects import DEFECTS
from tools.mutants import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], DEFECTS))
