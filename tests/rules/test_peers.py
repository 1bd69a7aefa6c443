"""The comparison with other systems: responses are parsed, seats given out and results rendered correctly."""

from collections import Counter

from bench.figure import Figure
from bench.peers.client import join_chunks, parse_response, path_in
from bench.peers.compare import Comparison
from bench.peers.crowd import list_places
from bench.peers.plan import Hall, Outcome, Plan, Report
from bench.peers.pretix_setup import render_plan
from bench.peers.pretix_system import replace_database
from bench.peers.report import render_row


def a_plan(*events: str, wanted_by: int = 1) -> Plan:
    halls = [Hall(event) for event in events]
    return Plan("http://127.0.0.1:1", "page", 1, 1.0, halls, pairs=10, pairs_per_row=5, wanted_by=wanted_by)


def a_report(done: int, seconds: float, taken: int = 0) -> Report:
    outcomes = {Outcome.DONE: done, **({Outcome.TAKEN: taken} if taken else {})}
    return Report({str(k): v for k, v in outcomes.items()}, seconds, seconds, 5.0, 1500.0, 0.1, [])


class TestResponses:
    def test_one_with_a_length_is_complete_with_its_last_byte(self) -> None:
        data = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nSet-Cookie: a=1; Path=/\r\n\r\nok"

        response = parse_response(data)

        assert response is not None
        assert (response.status, response.body, response.header("set-cookie")) == (201, b"ok", "a=1; Path=/")
        assert parse_response(data[:-1]) is None
        assert parse_response(data[:30]) is None

    def test_one_without_a_length_ends_with_the_connection(self) -> None:
        data = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall of it"

        assert parse_response(data) is None
        assert (found := parse_response(data, is_over=True)) is not None
        assert found.body == b"all of it"

    def test_chunks_are_joined_when_the_last_one_is_there(self) -> None:
        assert join_chunks(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n") == b"abcde"
        assert join_chunks(b"3\r\nabc\r\n2\r\nd") is None
        assert join_chunks(b"3\r\nabc\r\n") is None

    def test_a_location_may_be_absolute(self) -> None:
        assert path_in("http://127.0.0.1:80/a/b?c=1#d") == path_in("/a/b?c=1") == "/a/b?c=1"


class TestPlaces:
    def test_every_pair_of_every_hall_is_wanted_once(self) -> None:
        places = list(list_places(a_plan("one", "two")))

        assert len({(place.hall.event, *place.seats) for place in places}) == len(places) == 20
        assert places[0].seats == ["A-1", "A-2"]

    def test_a_rush_wants_each_pair_equally_often_in_another_order(self) -> None:
        places = [tuple(place.seats) for place in list_places(a_plan("one", wanted_by=4))]

        assert set(Counter(places).values()) == {4}
        assert places[:10] != sorted(places[:10])


class TestResults:
    def test_a_run_counts_what_was_done_and_a_rush_counts_answers(self) -> None:
        comparison = Comparison(Figure("holds", "per second", "pretix", 1.0))

        comparison.add(a_report(300, 2), a_report(20, 4))
        comparison.add(a_report(100, 1, taken=300), a_report(100, 8, taken=300))

        assert comparison.figure.runs == [(150, 5), (400, 50)]
        assert render_row(comparison)[2:] == ["5 ms, 1.5 s", "27.5 per second", "5 ms, 1.5 s", "19", "8–30"]


def test_a_seating_plan_has_every_seat_once() -> None:
    plan = render_plan([["A-1", "A-2"], ["B-1", "B-2"]])

    (zone,) = plan["zones"]
    seats = [seat["seat_guid"] for row in zone["rows"] for seat in row["seats"]]
    assert seats == ["A-1", "A-2", "B-1", "B-2"]
    assert [row["row_number"] for row in zone["rows"]] == ["A", "B"]


def test_another_database_of_the_same_server() -> None:
    assert replace_database("postgresql://me@/old?host=/tmp/x", "new") == "postgresql://me@/new?host=/tmp/x"
