"""The contents of a backup, as listed in its last part, contents.json. No I/O.

FILE (zip) ─┬─ ledger/<table>      rows as COPY writes them, in the order in which they can go back
            ├─ folder/<path>       files of the data folder: the sandbox's database and secret
            ├─ settings.env        the HOLDFAST_… settings, without the addresses of engines
            └─ contents.json       version, steps of the schema, sums, rows, sequences
"""

import msgspec

CONTENTS = "contents.json"
LEDGER = "ledger/"
FOLDER = "folder/"
SETTINGS = "settings.env"
FORM = 1  # version of the file format; an unknown one is refused
# Sales after the backup are lost, but buyers have their tickets and the gateway has their payments: these
# numbers must not be used again.
NUMBERS_SKIPPED = 1_000_000


class SchemaStep(msgspec.Struct, frozen=True):
    number: int
    name: str
    checksum: str


class BackupPart(msgspec.Struct, frozen=True):
    name: str
    sha256: str
    size: int
    rows: int = 0  # of a table
    columns: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        return self.name.removeprefix(LEDGER) if self.name.startswith(LEDGER) else ""


class BackupContents(msgspec.Struct, frozen=True, kw_only=True):
    form: int
    program: str  # its version
    made_at: str
    steps: tuple[SchemaStep, ...]
    parts: tuple[BackupPart, ...]
    sequences: dict[str, int]

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def tables(self) -> tuple[BackupPart, ...]:
        return tuple(part for part in self.parts if part.table)
