"""Every table is in one list of pods/tables.py: a new one must be replicated, moved, or left where it is."""

import re
from collections import Counter
from importlib import resources

from holdfast.pods.tables import GUARDED, HOME_ONLY, LOCAL, NUMBERED, OF_A_SHOW, REPLICATED, SALE

SCHEMA = (resources.files("holdfast") / "migrations" / "schema.sql").read_text()
TABLES = {
    match[1]: match[2]
    for match in re.finditer(
        r"^CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL
    )
}


def test_every_table_is_in_one_list() -> None:
    listed = Counter((*REPLICATED, *HOME_ONLY, *OF_A_SHOW, *LOCAL, SALE))
    assert [name for name, times in listed.items() if times > 1] == []
    assert set(listed) == TABLES.keys()


def test_what_moves_with_a_show_names_it() -> None:
    assert [name for name in OF_A_SHOW if not re.search(r"^\s+show_id ", TABLES[name], re.MULTILINE)] == []
    assert set(GUARDED) <= set(OF_A_SHOW)


def test_numbers_of_rows_that_move_are_shared_out() -> None:
    identities = set(re.findall(r"^ALTER TABLE (\w+) ALTER COLUMN id ADD GENERATED", SCHEMA, re.MULTILINE))
    assert set(NUMBERED) == identities & set(OF_A_SHOW)
