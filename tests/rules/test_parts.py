"""How the facts of a group are divided, and how processes come to have about as many parts each."""

from dataclasses import dataclass, field

from holdfast.outbox.parts import OFFER_EVERY_S, Part, Share, parts_of

LOOK_S = 0.1


@dataclass
class Ledger:
    """Who has which part, and the clock."""

    parts: list[Part]
    now: float = 1000.0
    readers: dict[Part, str] = field(default_factory=dict)

    def run(self, seconds: float, **shares: Share) -> None:
        """Every process looks at every part, ten times per second."""
        for _ in range(round(seconds / LOOK_S)):
            self.now += LOOK_S
            for name, share in shares.items():
                for part in self.parts:
                    self.look(name, share, part)

    def look(self, name: str, share: Share, part: Part) -> None:
        reader = self.readers.get(part, name)
        has_turn = reader == name and share.may_take(part)
        share.note(part, is_held=has_turn)
        if has_turn and share.should_offer(part):
            self.readers.pop(part, None)
        elif has_turn:
            self.readers[part] = name

    def counts(self) -> dict[str, int]:
        names = list(self.readers.values())
        return {name: names.count(name) for name in sorted(set(names))}


def test_every_show_is_in_one_part_and_the_first_row_has_the_name_of_the_group() -> None:
    parts = parts_of("reports", 3)

    assert [part.row for part in parts] == ["reports", "reports:2/3", "reports:3/3"]
    assert all([part.has(show) for part in parts].count(True) == 1 for show in range(100))
    assert parts_of("reports", 1) == [Part("reports")]


def test_a_process_alone_reads_all_parts_and_gives_none_away_for_long() -> None:
    ledger = Ledger(parts_of("reports", 4))
    share = Share(lambda: ledger.now)

    ledger.run(5, one=share)
    before = ledger.counts()
    ledger.run(10 * OFFER_EVERY_S - 1, one=share)
    ledger.run(5, one=share)

    assert before == ledger.counts() == {"one": 4}


def test_a_process_that_comes_later_gets_its_share() -> None:
    ledger = Ledger(parts_of("reports", 6))
    one, two, three = (Share(lambda: ledger.now) for _ in range(3))
    ledger.run(5, one=one)

    ledger.run(6 * OFFER_EVERY_S, one=one, two=two)
    of_two = ledger.counts()
    ledger.run(6 * OFFER_EVERY_S, one=one, two=two, three=three)

    assert of_two == {"one": 3, "two": 3}
    assert ledger.counts() == {"one": 2, "three": 2, "two": 2}


def test_parts_of_a_dead_process_are_taken_over() -> None:
    ledger = Ledger(parts_of("reports", 4))
    one, two = (Share(lambda: ledger.now) for _ in range(2))
    ledger.run(5, one=one, two=two)

    ledger.readers = {part: name for part, name in ledger.readers.items() if name == "two"}
    ledger.run(2, two=two)

    assert ledger.counts() == {"two": 4}
