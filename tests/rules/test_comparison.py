"""Where a map and its ledger say different things, and where they only seem to."""

from holdfast.bookings import BookingState, LiveBooking
from holdfast.claim import Claim, PoolMap
from holdfast.holds.comparison import MapDifference, differences

ALICE = Claim("a1", 1, (3, 4))


def a_booking(
    claim: Claim = ALICE, state: BookingState = BookingState.HELD, left_ms: int = 60_000
) -> LiveBooking:
    return LiveBooking(
        number=1, claim=claim, state=state, counts=state is not BookingState.BLOCKED, left_ms=left_ms
    )


def a_map(letters: str, *claims: Claim) -> PoolMap:
    return PoolMap(epoch=1, version=1, units=letters.encode(), claims={str(claim): 0.0 for claim in claims})


def kinds(pool: PoolMap, *bookings: LiveBooking) -> list[tuple[str, int]]:
    return [(difference.kind, difference.seat) for difference in differences(pool, bookings)]


def test_a_map_equal_to_the_ledger_has_no_differences() -> None:
    bookings = [
        a_booking(),
        a_booking(Claim("b2", 2, (0,)), BookingState.CONFIRMED),
        a_booking(Claim("block3", 9, (7,)), BookingState.BLOCKED),
        a_booking(Claim("p4", 4, (9,)), BookingState.PAYING),
    ]

    assert kinds(a_map("BAAHHAAXAH", ALICE, Claim("p4", 4, (9,))), *bookings) == []


def test_nothing_on_either_side_does_not_differ() -> None:
    assert kinds(a_map("AAAA")) == []


def test_a_claim_without_a_row() -> None:
    assert kinds(a_map("AAAHHA", ALICE)) == [("claim without a row", 3)]


def test_a_held_row_without_a_claim() -> None:
    assert kinds(a_map("AAAHHA"), a_booking()) == [("row without a claim", 3)]


def test_a_held_row_that_shows_as_free() -> None:
    found = kinds(a_map("AAAHAA", ALICE), a_booking())

    assert found == [("booked seat not shown", 4)]


def test_a_confirmed_row_that_shows_as_held() -> None:
    found = kinds(a_map("AAAHHA", ALICE), a_booking(state=BookingState.CONFIRMED))

    assert found == [("booked seat not shown", 3), ("booked seat not shown", 4)]


def test_a_blocked_row_that_shows_as_booked() -> None:
    found = kinds(a_map("AAABBA"), a_booking(state=BookingState.BLOCKED))

    assert found == [("booked seat not shown", 3), ("booked seat not shown", 4)]


def test_a_seat_that_shows_as_taken_without_an_owner() -> None:
    assert differences(a_map("AABA"), []) == [MapDifference("seat shown taken", 2, "B")]


def test_a_confirmed_row_needs_no_claim() -> None:
    assert kinds(a_map("AAABBA"), a_booking(state=BookingState.CONFIRMED)) == []


def test_an_expired_row_that_is_not_closed_may_show_either_way() -> None:
    """Its claim lives a little longer than it, and its row until the next sweep."""
    lapsed = a_booking(left_ms=0)

    assert kinds(a_map("AAAHHA", ALICE), lapsed) == []
    assert kinds(a_map("AAAAAA"), lapsed) == []


def test_a_lapsed_row_whose_seats_are_anothers_claim() -> None:
    """Claimed by the next buyer, whose ledger row is not written yet: that is reported."""
    bob = Claim("b2", 2, (4, 5))

    assert kinds(a_map("AAAAHH", bob), a_booking(left_ms=-5)) == [("claim without a row", 4)]


def test_a_row_on_a_seat_the_map_does_not_have_yet() -> None:
    """The layout has grown since the map was written."""
    assert kinds(a_map("AAA"), a_booking(state=BookingState.CONFIRMED)) == [
        ("booked seat not shown", 3),
        ("booked seat not shown", 4),
    ]


def test_a_difference_names_the_problem_seat_and_booking() -> None:
    assert str(MapDifference("seat shown taken", 2, "B")) == "seat shown taken: seat 2 (B)"
