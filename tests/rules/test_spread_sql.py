"""In a run with `--pods`, statements of tests go to the database that has their tables."""

import pytest

from tests.support.spread_sql import Meant, meant_for


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("INSERT INTO city (slug) VALUES ('x')", Meant.HOME),
        ("SELECT name FROM account WHERE id = $1", Meant.HOME),
        ("SELECT count(*) FROM session JOIN notice USING (account_id)", Meant.HOME),
        ("SELECT count(*) FROM booking WHERE show_id = $1", Meant.SALE),
        ("SELECT account, sum(amount) FROM journal JOIN show ON id = show_id", Meant.SALE),
        ("UPDATE payment SET card = 'x' WHERE show_id = $1", Meant.SALE),
        ("SELECT * FROM sale WHERE show_id = $1 FOR UPDATE", Meant.SALE),
        ("UPDATE sale SET map_stale = true WHERE show_id = $1", Meant.SALE),
        ("UPDATE sale SET opens_at = now() WHERE show_id = $1", Meant.HOME),
        ("INSERT INTO sale (show_id) VALUES ($1)", Meant.HOME),
        ("SELECT 1", Meant.ANY),
    ],
)
def test_a_statement_is_meant_for_the_database_with_its_tables(sql: str, meant: Meant) -> None:
    assert meant_for(sql) is meant


def test_functions_are_looked_into() -> None:
    assert meant_for("SELECT erase_accounts($1)") is Meant.HOME
    assert meant_for("SELECT open_holds($1, $2)") is Meant.SALE
