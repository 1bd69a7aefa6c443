"""python -m holdfast"""

from holdfast.cli.main import main

main()
