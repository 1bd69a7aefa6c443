"""Facts are a contract: every published version can be read, and bodies only grow (R28)."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import holdfast.outbox
from holdfast.bookings import BookingState, public_id
from holdfast.outbox import (
    KINDS,
    BookingConfirmed,
    BookingHeld,
    Consumer,
    Fact,
    UnknownBody,
    from_json,
    to_json,
)
from holdfast.outbox.consumer import PAUSE_MAX_S, last_settled_id, pause_s
from holdfast.outbox.fact import build_fact
from holdfast.reports.store import CONSUMED_KINDS

SOURCES = Path(holdfast.outbox.__file__).parents[1]
SAMPLES = sorted((Path(__file__).parent / "facts").glob("*.json"))
SUBJECTS = {kind.split(".")[0] for kind in KINDS} | {"account", "waitlist", "line"}
AT = datetime(2026, 5, 1, 19, 0, tzinfo=UTC)


def a_row(kind: str = "booking.held", body: str | None = None, **other: Any) -> dict[str, Any]:
    """As the relay reads it: the outbox row and its booking."""
    booking = {"owner_id": 7, "seats": [3, 4], "prices_minor": [1500, 1500], "amount_minor": 3000}
    rest = {
        "currency": "EUR",
        "note": "",
        "is_block": False,
        "ends_at": AT,
        "at": AT,
        "body": body,
        "trace": None,
    }
    return {"id": 12, "show_id": 5, "number": 9, "kind": kind} | booking | rest | other


def of_show(kind: str, body: str) -> dict[str, Any]:
    names = ("number", "owner_id", "seats", "prices_minor", "amount_minor", "currency", "note", "is_block")
    return a_row(kind, body) | dict.fromkeys((*names, "ends_at"))


def sample_name(path: Path) -> tuple[str, int]:
    """booking.held.v1.json → booking.held, 1"""
    kind, _, version = path.stem.rpartition(".v")
    return kind, int(version)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_published_fact_version_can_still_be_read(path: Path) -> None:
    published = msgspec.json.decode(path.read_bytes())

    fact = from_json(path.read_bytes())

    assert (fact.kind, fact.version) == sample_name(path)
    assert type(fact.body) is KINDS[fact.kind]
    now = msgspec.json.decode(to_json(fact))
    lost = [name for name, value in published["body"].items() if now["body"].get(name) != value]
    assert not lost, f"fields were taken away or mean something else: {lost}"
    assert {name: now[name] for name in published if name != "body"} == {
        n: published[n] for n in published if n != "body"
    }


def test_there_is_a_sample_of_every_version_with_every_field() -> None:
    """A new kind or version gets a file beside the others; those that are there are never changed."""
    samples = {sample_name(path): set(msgspec.json.decode(path.read_bytes())["body"]) for path in SAMPLES}

    for kind, body in KINDS.items():
        assert {(kind, version) for version in range(1, body.VERSION + 1)} <= samples.keys(), kind
        assert samples[kind, body.VERSION] == set(body.__struct_fields__), (
            f"{kind}: raise VERSION, add a sample"
        )


def test_every_kind_that_is_written_is_known() -> None:
    """Kinds made of parts ('booking.' || state) are those of the states themselves."""
    found = {
        kind
        for path in SOURCES.rglob("*.sql")
        for kind in re.findall(r"'([a-z_]+\.[a-z_]+)'", path.read_text())
        if kind.split(".")[0] in SUBJECTS
    }

    assert len(found) > 5
    assert found <= KINDS.keys()
    assert {f"booking.{state}" for state in BookingState} <= KINDS.keys()


def test_fields_missing_in_the_outbox_come_from_the_booking() -> None:
    fact = build_fact(a_row())

    assert fact.body == BookingHeld(
        owner_id=7,
        seats=(3, 4),
        prices_minor=(1500, 1500),
        amount_minor=3000,
        currency="EUR",
        expires_at=AT,
    )
    assert (fact.id, fact.version, fact.booking_id) == (12, 1, public_id(5, 9))


def test_facts_about_a_show_have_no_booking() -> None:
    fact = build_fact(of_show("show.cancelled", '{"revision": 2}'))

    assert (fact.number, fact.booking_id, fact.key) == (None, None, "5:")


def test_a_fact_survives_encoding_and_decoding() -> None:
    fact = build_fact(
        a_row("payment.late", '{"attempt": 1, "booked": true, "amount_minor": 1, "currency": "EUR"}')
    )

    assert from_json(to_json(fact)) == fact


@pytest.mark.parametrize(
    "row", [a_row("weather.changed", '{"rain": true}', trace="00-1-2-01"), of_show("booking.held", "{}")]
)
def test_an_unknown_fact_is_passed_on_unchanged(row: dict[str, Any]) -> None:
    fact = build_fact(row)

    assert isinstance(fact.body, UnknownBody)
    assert from_json(to_json(fact)) == fact


def test_a_field_of_a_newer_program_is_left_aside() -> None:
    wire = msgspec.json.decode(to_json(build_fact(a_row("booking.confirmed"))))
    wire["body"]["mood"], wire["colour"], wire["version"] = "merry", "red", 9

    fact = from_json(msgspec.json.encode(wire))

    assert isinstance(fact.body, BookingConfirmed)
    assert fact.version == 9


@pytest.mark.parametrize(
    ("settled", "ids", "until"),
    [(0, [], 0), (0, [1, 2, 3], 3), (3, [4, 6, 7], 4), (3, [5, 6], 3)],
)
def test_the_settled_position_stops_before_a_missing_id(settled: int, ids: list[int], until: int) -> None:
    assert last_settled_id(settled, ids) == until


def test_pauses_grow_to_a_minute() -> None:
    assert [pause_s(tries) for tries in (0, 1, 2, 3)] == [0.0, 0.5, 1.0, 2.0]
    assert pause_s(1000) == PAUSE_MAX_S


async def ignore(_fact: Fact) -> None: ...


def test_a_consumer_of_facts_that_do_not_exist_is_a_mistake() -> None:
    with pytest.raises(AssertionError, match=r"booking\.vanished"):
        Consumer(group="x", kinds=("booking.vanished",), call=ignore)


def test_every_booking_fact_that_reports_count_is_a_state_or_a_reduction() -> None:
    kinds = {kind for kind in CONSUMED_KINDS if kind.startswith("booking.")}

    assert kinds - {"booking.reduced"} <= {f"booking.{state}" for state in BookingState}
