"""Which standbys of the ledger are good enough for what the operator expects of them."""

import pytest

from holdfast.engines.ledger_hosts import split_hosts
from holdfast.engines.standbys import StandbyFacts, find_standby_fault


def facts(
    names: str = "FIRST 1 (*)", commit: str = "on", synchronous: int = 1, hidden: int = 0
) -> StandbyFacts:
    return StandbyFacts(names, commit, synchronous, streaming=2, hidden=hidden, lag_s=0.0)


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        (facts(), 1, ""),
        (facts("ANY 2 (a, b, c)", synchronous=3), 2, ""),
        (facts("a, b"), 1, ""),
        (facts(commit="remote_apply"), 1, ""),
        (facts("", synchronous=0), 0, ""),
        (facts("", synchronous=0), 1, "wait for no standby"),
        (facts(commit="local"), 1, "synchronous_commit = local"),
        (facts("ANY 1 (a, b)", synchronous=2), 2, "wait for 1 of 2"),
        (facts(synchronous=0), 1, "0 of 1 synchronous standbys"),
        (facts(synchronous=0, hidden=1), 1, "GRANT pg_monitor"),
        (facts("FIRST 2 (*)", synchronous=2), 0, "HOLDFAST_LEDGER_STANDBYS_MIN=2"),
        (facts(commit="local"), 0, ""),
    ],
)
def test_what_is_missing_is_named_with_the_remedy(found: StandbyFacts, expected: int, words: str) -> None:
    fault = find_standby_fault(found, expected)

    assert words in fault
    assert bool(words) == bool(fault)


@pytest.mark.parametrize(
    ("url", "urls"),
    [
        ("postgresql://a@db1/x", ["postgresql://a@db1/x"]),
        ("postgresql:///x?host=/run/a,/run/b", ["postgresql:///x?host=/run/a,/run/b"]),
        (
            "postgresql://a:b%40c@db1:5432,[::1]:5433/x?sslmode=require",
            [
                "postgresql://a:b%40c@db1:5432/x?sslmode=require",
                "postgresql://a:b%40c@[::1]:5433/x?sslmode=require",
            ],
        ),
        ("postgresql://db1,db2,db3/x", [f"postgresql://db{n}/x" for n in (1, 2, 3)]),
    ],
)
def test_a_url_is_split_by_hosts(url: str, urls: list[str]) -> None:
    assert split_hosts(url) == urls
