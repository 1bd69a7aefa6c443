"""Which party must get an offer, found in the simplest way: every party, every group of seats, in order.

It shares no code with the product. Only which of several fitting groups a party gets is taken from the
product, after checking that it is one of them.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class OracleSeat:
    row: str
    place: int  # neighbours differ by one
    category: str
    price_minor: int


@dataclass
class OracleParty:
    number: int
    seats: int
    categories: tuple[str, ...]
    price_minor_max: int | None
    together: bool
    queue_position: int | None = None
    is_waiting: bool = True

    @property
    def rank(self) -> tuple[bool, int, int]:
        return self.queue_position is None, self.queue_position or 0, self.number


@dataclass
class Oracle:
    hall: dict[int, OracleSeat]
    parties: dict[int, OracleParty] = field(default_factory=dict)
    reserved: set[int] = field(default_factory=set)

    def free(self, seats: tuple[int, ...]) -> None:
        """Seats come free: reserved while a party waits, otherwise on sale."""
        if any(party.is_waiting for party in self.parties.values()):
            self.reserved |= set(seats)

    def check_offers(self, made: dict[int, tuple[int, ...]]) -> None:
        """`made` are the offers of one step: number of the party -> seats."""
        for party in sorted(self.parties.values(), key=lambda one: one.rank):
            if not party.is_waiting:
                assert party.number not in made, f"party {party.number} does not wait, and got {made}"
                continue
            can_be_served = self.can_serve(party)
            assert can_be_served == (party.number in made), (
                f"party {party}: {made}, reserved {sorted(self.reserved)}, must be {can_be_served}"
            )
            if can_be_served:
                self._take(party, made[party.number])
        if not any(party.is_waiting for party in self.parties.values()):
            self.reserved.clear()

    def can_serve(self, party: OracleParty) -> bool:
        usable = [seat for seat in self.reserved if self._suits(seat, party)]
        if not party.together:
            return len(usable) >= party.seats
        return any(self._are_neighbours(group) for group in self._groups(usable, party.seats))

    def _take(self, party: OracleParty, seats: tuple[int, ...]) -> None:
        assert set(seats) <= self.reserved, f"{seats} were not reserved"
        assert len(set(seats)) == party.seats
        assert all(self._suits(seat, party) for seat in seats), f"{seats} do not suit {party}"
        assert not party.together or self._are_neighbours(seats), f"{seats} are not side by side"
        self.reserved -= set(seats)
        party.is_waiting = False

    def _suits(self, number: int, party: OracleParty) -> bool:
        seat = self.hall[number]
        is_cheap = party.price_minor_max is None or seat.price_minor <= party.price_minor_max
        return is_cheap and (not party.categories or seat.category in party.categories)

    def _groups(self, usable: list[int], size: int) -> list[list[int]]:
        ordered = sorted(usable, key=lambda seat: (self.hall[seat].row, self.hall[seat].place))
        return [ordered[at : at + size] for at in range(len(ordered) - size + 1)]

    def _are_neighbours(self, seats: tuple[int, ...] | list[int]) -> bool:
        found = sorted((self.hall[seat].row, self.hall[seat].place) for seat in seats)
        row, first = found[0]
        return found == [(row, first + step) for step in range(len(found))]
