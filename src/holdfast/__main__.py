"""python -m holdfast"""

import sys

from holdfast.cli.children import CHILDREN, run_child

if sys.argv[1:2] and sys.argv[1] in CHILDREN:
    run_child(sys.argv[1], sys.argv[2:])

from holdfast.cli.main import main

main()
