"""A .lua file as a value, with its header held to its word.

`-- include pool` takes in pool.lua of the same package; `-- include holdfast.claim/pool` that of another.
The number of keys is read from the header, so a header that lies fails the first test.
"""

import hashlib
import re
from importlib import resources

KEY_LINE = re.compile(r"^-- KEYS\[(\d+)\]", re.MULTILINE)
INCLUDE = re.compile(r"^-- include (?:([\w.]+)/)?(\w+)$", re.MULTILINE)


class Script:
    def __init__(self, package: str, name: str) -> None:
        own = _text(package, name)
        self.name = name
        self.source = INCLUDE.sub(lambda found: _text(found[1] or package, found[2]), own)
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        self.key_count = len(KEY_LINE.findall(own))


def _text(package: str, name: str) -> str:
    return (resources.files(package) / f"{name}.lua").read_text()
