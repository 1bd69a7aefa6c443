"""What an uploaded scan contradicts: decided without an engine."""

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.checkin.scan import Verdict
from holdfast.checkin.upload_rules import (
    PastScan,
    ScannedTicket,
    UploadedClaim,
    find_rival,
    judge,
    scan_ids,
    stored_as,
)

ADMITTED, LEFT, USED = Verdict.ADMITTED, Verdict.LEFT, Verdict.USED
TICKET = ScannedTicket(number=7, seat=3, edition=2, is_void=False)


def at(minute: int) -> datetime:
    return datetime(2026, 11, 17, 19, 0, tzinfo=UTC) + timedelta(minutes=minute)


def admitted(minute: int, edition: int = 2) -> UploadedClaim:
    return UploadedClaim(ADMITTED, at(minute), edition)


class TestConflicts:
    def test_an_admission_that_nothing_contradicts_moves_the_visitor(self) -> None:
        effect = judge(admitted(5), TICKET, [])

        assert (effect.why, effect.is_latest) == (None, True)

    @pytest.mark.parametrize(
        ("ticket", "edition", "why"),
        [
            (None, 2, "unknown"),
            (ScannedTicket(7, 3, 2, is_void=True), 2, "void"),
            (TICKET, 1, "transferred"),
            (TICKET, 3, "transferred"),
        ],
    )
    def test_a_ticket_that_was_not_valid_is_raised(
        self, ticket: ScannedTicket | None, edition: int, why: str
    ) -> None:
        assert judge(admitted(5, edition), ticket, []).why == why

    def test_a_rejection_contradicts_nothing(self) -> None:
        """The device turned the visitor away: no visitor without a ticket is inside."""
        history = [PastScan(1, ADMITTED, at(0))]

        assert judge(UploadedClaim(USED, at(5), 2), TICKET, history).why is None

    @pytest.mark.parametrize(("minute", "is_first"), [(5, False), (-5, True)])
    def test_of_two_admissions_the_later_by_the_clocks_is_raised(self, minute: int, is_first: bool) -> None:
        effect = judge(admitted(minute), TICKET, [PastScan(1, ADMITTED, at(0))])

        assert (effect.why, effect.is_first) == ("used", is_first)

    def test_of_three_an_earlier_rival_is_preferred_to_a_nearer_later_one(self) -> None:
        """Else the first of three would be raised twice and the third not at all."""
        early, late = PastScan(1, ADMITTED, at(0)), PastScan(2, ADMITTED, at(11))

        assert find_rival(at(10), [late, early]) is early


class TestRivals:
    def test_an_undone_admission_is_not_a_rival(self) -> None:
        assert find_rival(at(5), [PastScan(1, ADMITTED, at(0), is_undone=True)]) is None

    @pytest.mark.parametrize(("out", "is_rival"), [(3, False), (5, False), (0, True), (6, True)])
    def test_an_exit_between_the_two_is_a_second_visit(self, out: int, is_rival: bool) -> None:
        history = [PastScan(1, ADMITTED, at(0)), PastScan(2, LEFT, at(out))]

        assert (find_rival(at(5), history) is not None) is is_rival

    def test_a_later_scan_has_decided_where_the_visitor_is(self) -> None:
        assert not judge(admitted(5), TICKET, [PastScan(1, LEFT, at(9))]).is_latest
        assert judge(admitted(5), TICKET, [PastScan(1, ADMITTED, at(1))]).is_latest


class TestScanIds:
    def test_a_new_scan_has_its_own_id_and_a_repeated_one_is_known(self) -> None:
        assert stored_as("s1", 7, ADMITTED, {}) == ("s1", False)
        assert stored_as("s1", 7, ADMITTED, {"s1": (7, ADMITTED)}) == ("s1", True)

    def test_an_id_used_for_another_ticket_is_another_scan(self) -> None:
        known = {"s1": (8, ADMITTED)}

        assert stored_as("s1", 7, ADMITTED, known) == ("s1~7", False)
        assert stored_as("s1", 7, ADMITTED, known | {"s1~7": (7, ADMITTED)}) == ("s1~7", True)

    def test_a_device_that_decided_otherwise_has_both_recorded(self) -> None:
        """Our answer was lost on its way: the server rejected the scan, and the device let the visitor in."""
        assert stored_as("s1", 7, ADMITTED, {"s1": (7, USED)}) == ("s1~", False)
        assert stored_as("s1", 7, ADMITTED, {"s1": (8, USED), "s1~7": (7, USED)}) == ("s1~7~", False)

    def test_every_id_that_may_be_used_is_looked_up(self) -> None:
        assert set(scan_ids("s1", 7)) == {"s1", "s1~7", "s1~", "s1~7~"}
