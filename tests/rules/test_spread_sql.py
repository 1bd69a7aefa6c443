"""In a run with `--pods`, statements of tests go to the database that has their tables."""

import pytest

from tests.support.spread_sql import Place, place_of


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("INSERT INTO city (slug) VALUES ('x')", Place.HOME),
        ("SELECT name FROM account WHERE id = $1", Place.HOME),
        ("SELECT count(*) FROM session JOIN notice USING (account_id)", Place.HOME),
        ("SELECT count(*) FROM booking WHERE show_id = $1", Place.SALE),
        ("SELECT account, sum(amount) FROM journal JOIN show ON id = show_id", Place.SALE),
        ("UPDATE payment SET card = 'x' WHERE show_id = $1", Place.SALE),
        ("SELECT * FROM sale WHERE show_id = $1 FOR UPDATE", Place.SALE),
        ("UPDATE sale SET map_stale = true WHERE show_id = $1", Place.SALE),
        ("UPDATE sale SET opens_at = now() WHERE show_id = $1", Place.HOME),
        ("INSERT INTO sale (show_id) VALUES ($1)", Place.HOME),
        ("SELECT 1", Place.ANY),
    ],
)
def test_a_statement_goes_to_the_database_with_its_tables(sql: str, place: Place) -> None:
    assert place_of(sql) is place


def test_functions_are_looked_into() -> None:
    assert place_of("SELECT erase_accounts($1)") is Place.HOME
    assert place_of("SELECT open_holds($1, $2)") is Place.SALE
