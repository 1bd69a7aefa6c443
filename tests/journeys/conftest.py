"""What needs a program that is not here is not looked at: nginx comes from the system, not from a wheel."""

import shutil

collect_ignore = [] if shutil.which("nginx") else ["test_nginx.py"]
