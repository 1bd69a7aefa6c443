"""The draw of a waiting room (R27): an order that no party can choose, and everyone can check."""

import math
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.waitingroom.draw import (
    DrawMismatch,
    DrawRecord,
    Permutation,
    commit,
    derive_key,
    encode,
    verify_draw,
)

DOCS = Path(__file__).parents[2] / "docs" / "waiting_room.md"
UNTIL = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
numbers = st.integers(0, 2**63 - 1)


def a_seed(number: int) -> bytes:
    return number.to_bytes(32, "big")


def a_record(seed: bytes, n: int, **other: object) -> DrawRecord:
    record = DrawRecord(
        show_id=7,
        opening=1,
        commitment=commit(7, 1, seed).hex(),
        beacon="",
        entrants=n,
        seed=seed.hex(),
        key=derive_key(7, 1, seed, n, "").hex(),
    )
    return msgspec.structs.replace(record, **other)


def a_draw_without_its_beacon(**other: object) -> DrawRecord:
    """Its value had not come at the deadline, and it was drawn then."""
    commitment = commit(7, 1, a_seed(1), "round 5", UNTIL).hex()
    known: dict[str, object] = {"beacon": "round 5", "beacon_until": UNTIL, "drawn_at": UNTIL}
    return a_record(a_seed(1), 50, commitment=commitment, **known | other)


def chi_square_p(statistic: float, freedom: int) -> float:
    """The probability of a larger statistic by chance, by Wilson and Hilferty; good for many degrees."""
    spread = 2 / (9 * freedom)
    z = ((statistic / freedom) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(z / math.sqrt(2))


class TestPermutation:
    @given(n=st.integers(1, 400), seed=st.binary(min_size=32, max_size=32))
    def test_every_position_is_given_once_and_leads_back(self, n: int, seed: bytes) -> None:
        order = Permutation(derive_key(1, 1, seed, n, ""), n)

        positions = [order.position(number) for number in range(n)]

        assert sorted(positions) == list(range(n))
        assert [order.number(position) for position in positions] == list(range(n))
        assert order.positions() == positions

    @given(n=st.integers(1, 2_000_000), data=st.data())
    def test_one_position_of_two_million_needs_no_others(self, n: int, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, n - 1))
        order = Permutation(b"k" * 32, n)

        assert order.number(order.position(number)) == number

    def test_all_orders_of_four_are_equally_likely(self) -> None:
        counts = dict.fromkeys(permutations(range(4)), 0)
        for seed in range(4800):
            order = Permutation(derive_key(1, 1, a_seed(seed), 4, ""), 4)
            counts[tuple(order.positions())] += 1

        statistic = sum((count - 200) ** 2 / 200 for count in counts.values())

        assert chi_square_p(statistic, 23) > 0.001

    def test_no_arrival_is_favoured_in_a_thousand_draws_of_a_thousand(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Chi-square over arrival × tenth of the order. The seeds are fixed, and so is the p."""
        draws = n = 1000
        tenths = [[0] * 10 for _ in range(n)]
        for seed in range(draws):
            order = Permutation(derive_key(7, 1, a_seed(seed), n, ""), n)
            for number, position in enumerate(order.positions()):
                tenths[number][position * 10 // n] += 1

        expected = draws / 10
        statistic = sum((count - expected) ** 2 / expected for row in tenths for count in row)
        p = chi_square_p(statistic, (n - 1) * 9)
        with capsys.disabled():
            print(f"\n  draw: {draws} draws of {n} entrants, chi-square {statistic:.0f}, p = {p:.3f}")

        assert p > 0.001


class TestProtocol:
    def test_an_honest_draw_is_accepted(self) -> None:
        assert verify_draw(a_record(a_seed(1), 50)).n == 50

    def test_an_operator_who_tries_a_thousand_seeds_after_the_commitment_is_refused(self) -> None:
        """A friend's number would be first with some of them; none is the seed that was committed to."""
        friend, honest = 13, a_record(a_seed(0), 100)
        chosen = [
            seed
            for seed in map(a_seed, range(1, 1001))
            if Permutation(derive_key(7, 1, seed, 100, ""), 100).position(friend) == 0
        ]

        assert chosen, "some seeds would favour the friend"
        for seed in chosen:
            forged = a_record(seed, 100, commitment=honest.commitment)
            with pytest.raises(DrawMismatch, match="committed"):
                verify_draw(forged)

    def test_a_commitment_of_another_show_or_opening_is_refused(self) -> None:
        for other in ({"show_id": 8}, {"opening": 2}):
            with pytest.raises(DrawMismatch, match="committed"):
                verify_draw(a_record(a_seed(1), 50, **other))

    def test_a_key_that_does_not_follow_is_refused(self) -> None:
        with pytest.raises(DrawMismatch, match="key"):
            verify_draw(a_record(a_seed(1), 50, entrants=51))

    def test_a_beacon_that_was_announced_must_be_there_and_counts(self) -> None:
        with pytest.raises(DrawMismatch, match="beacon"):
            verify_draw(a_record(a_seed(1), 50, beacon="round 5"))
        orders = {
            tuple(
                verify_draw(a_record(a_seed(1), 50, beacon="round 5", beacon_value=v, key=None)).positions()
            )
            for v in ("a", "b")
        }
        assert len(orders) == 2

    def test_a_draw_goes_on_without_its_beacon_after_the_deadline_that_was_committed_to(self) -> None:
        late = a_draw_without_its_beacon()

        assert late.is_without_beacon
        assert verify_draw(late).n == 50

    @pytest.mark.parametrize(
        "change",
        [
            {"drawn_at": UNTIL - timedelta(seconds=1)},
            {"drawn_at": None},
            {"beacon_until": None},
            {"beacon_until": UNTIL - timedelta(hours=1)},
            {"beacon": "round 6"},
        ],
        ids=["too early", "at an unknown time", "without a deadline", "another deadline", "another beacon"],
    )
    def test_but_not_otherwise(self, change: dict[str, object]) -> None:
        """A house that could set the deadline afterwards could choose between two orders."""
        with pytest.raises(DrawMismatch):
            verify_draw(msgspec.structs.replace(a_draw_without_its_beacon(), **change))

    def test_a_deadline_that_was_met_changes_nothing(self) -> None:
        met = a_draw_without_its_beacon(beacon_value="c0ffee", key=None)

        order = verify_draw(met)

        assert not met.is_without_beacon
        assert order.key == derive_key(7, 1, a_seed(1), 50, "c0ffee")

    def test_before_the_draw_there_is_nothing_to_verify(self) -> None:
        with pytest.raises(DrawMismatch, match="not drawn"):
            verify_draw(msgspec.structs.replace(a_record(a_seed(1), 50), seed=None))

    @given(st.lists(st.binary(max_size=12), max_size=4), st.lists(st.binary(max_size=12), max_size=4))
    def test_no_two_tuples_of_fields_have_one_encoding(self, one: list[bytes], other: list[bytes]) -> None:
        assert (encode(b"x", *one) == encode(b"x", *other)) == (one == other)


def test_the_independent_program_in_the_docs_agrees(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert "holdfast" not in program.replace('b"holdfast queue', "")
    record = a_record(a_seed(5), 1234, beacon="round 9", beacon_value="c0ffee", key=None)
    order = verify_draw(record)
    saved = tmp_path / "draw.json"
    saved.write_bytes(msgspec.json.encode(record))
    (tmp_path / "check.py").write_text(program)

    def run(number: int) -> str:
        command = [sys.executable, "-I", str(tmp_path / "check.py"), str(saved), str(number)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()

    assert [run(number) for number in (0, 1, 1233)] == [
        f"position {order.position(number)}" for number in (0, 1, 1233)
    ]
    saved.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, seed=a_seed(6).hex())))
    assert run(0) == "the seed is not the one that was committed to"
    late = a_draw_without_its_beacon()
    saved.write_bytes(msgspec.json.encode(late))
    assert run(7) == f"position {verify_draw(late).position(7)}"
    saved.write_bytes(msgspec.json.encode(msgspec.structs.replace(late, beacon="round 6")))
    assert run(7) == "the seed is not the one that was committed to"


class TestCommand:
    """`holdfast verify-draw`, offline: no engine runs."""

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "holdfast", "verify-draw", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_a_saved_draw(self, tmp_path: Path) -> None:
        saved, record = tmp_path / "draw.json", a_record(a_seed(3), 500)
        saved.write_bytes(msgspec.json.encode(record))

        done = self.run(str(saved), "--number", "17", "--json")

        position = verify_draw(record).position(17)
        assert msgspec.json.decode(done.stdout) == {
            "valid": True,
            "entrants": 500,
            "number": 17,
            "position": position,
        }

    def test_a_forged_draw_is_one_line(self, tmp_path: Path) -> None:
        saved = tmp_path / "draw.json"
        saved.write_bytes(
            msgspec.json.encode(msgspec.structs.replace(a_record(a_seed(3), 500), seed=None, key=None))
        )
        forged = a_record(a_seed(4), 500, commitment=a_record(a_seed(3), 500).commitment)
        (tmp_path / "forged.json").write_bytes(msgspec.json.encode(forged))

        early, wrong = self.run(str(saved)), self.run(str(tmp_path / "forged.json"))
        missing, other = self.run(str(tmp_path / "none.json")), self.run(__file__)

        assert [done.returncode for done in (early, wrong, missing, other)] == [2, 2, 2, 2]
        assert early.stderr == "holdfast: the draw is not valid: the order is not drawn yet\n"
        assert "not the one that was committed to" in wrong.stderr
        assert "cannot be read" in missing.stderr
        assert "not the answer of" in other.stderr
        assert all(done.stderr.count("\n") == 1 for done in (early, wrong, missing, other))
