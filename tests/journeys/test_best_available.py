"""R11: so many seats, chosen and held in one step; the answer says why these."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.layouts import Layout, LayoutBody
from holdfast.layouts.body import CategoryBody, RowBody, SectionBody
from tests.support import shows as cast
from tests.support.shows import Fan, problem


def a_theatre() -> Layout:
    """Gold in front, silver behind; a wheelchair space with its companion at the end of the last row."""
    rows = [
        RowBody(label="A", seats="1-8", at=(0.0, 2.0), align="centre", category="Gold"),
        RowBody(label="B", seats="1-8", at=(0.0, 3.0), align="centre", category="Silver"),
        RowBody(
            label="C",
            seats="1-8",
            at=(0.0, 4.0),
            align="centre",
            category="Silver",
            wheelchair="7",
            companion="8",
        ),
    ]
    return Layout.build(
        LayoutBody(
            name="Theatre",
            focal=(0.0, 0.0),
            categories=[
                CategoryBody(name="Gold", colour="#E69F00"),
                CategoryBody(name="Silver", colour="#0072B2"),
            ],
            sections=[SectionBody(name="Stalls", rows=rows)],
        )
    )


def labels(answer: Any) -> list[str]:
    assert answer.status_code == 201, answer.text
    return [seat["label"] for seat in answer.json()["seats"]]


async def test_seats_together_near_the_stage_and_why(alice: Fan, a_show: Callable[..., Any]) -> None:
    answer = await alice.holds(await a_show(layout=a_theatre()), best={"count": 2})

    assert {label[0] for label in labels(answer)} == {"A"}
    assert answer.json()["together"] is True
    assert "nearest the stage" in answer.json()["why"]
    assert "side by side" in answer.json()["why"]


@pytest.mark.parametrize(
    "wish, row",
    [({"category": "Silver"}, "B"), ({"category": "Gold"}, "A"), ({"prefer": "front"}, "A")],
)
async def test_a_preference_is_respected(
    alice: Fan, a_show: Callable[..., Any], wish: dict[str, str], row: str
) -> None:
    answer = await alice.holds(await a_show(layout=a_theatre()), best={"count": 2, **wish})

    assert {label[0] for label in labels(answer)} == {row}


async def test_by_the_aisle(alice: Fan, a_show: Callable[..., Any]) -> None:
    answer = await alice.holds(await a_show(layout=a_theatre()), best={"count": 2, "prefer": "aisle"})

    assert labels(answer) in (["A-1", "A-2"], ["A-7", "A-8"])


async def test_a_wheelchair_space_with_its_companion(alice: Fan, a_show: Callable[..., Any]) -> None:
    answer = await alice.holds(await a_show(layout=a_theatre()), best={"count": 2, "accessible": True})

    assert labels(answer) == ["C-7", "C-8"]


async def test_a_wheelchair_space_is_given_on_request_only(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(layout=a_theatre(), owner_seats_max=30)
    for _ in range(10):
        await alice.holds(show, best={"count": 2})
    await alice.holds(show, best={"count": 2})

    refused = await bob.holds(show, best={"count": 1})

    assert (refused.status_code, problem(refused)["code"]) == (409, "sold_out")
    assert problem(refused)["free"] == 2


async def test_a_crowd_of_pairs_fills_the_house_to_the_last_seat(
    alice: Fan, a_show: Callable[..., Any], app: Any
) -> None:
    show = await a_show(40)
    crowd = await cast.fans(app, alice.api, 25)

    answers = await asyncio.gather(*(fan.holds(show, best={"count": 2}) for fan in crowd))

    held = [label for answer in answers if answer.status_code == 201 for label in labels(answer)]
    assert len(held) == len(set(held)) == 40
    assert [problem(answer)["code"] for answer in answers if answer.status_code != 201] == ["sold_out"] * 5


async def test_a_group_is_split_only_if_allowed(alice: Fan, bob: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(10)
    await alice.holds(show, "A-4", "A-8")

    refused = await bob.holds(show, best={"count": 4})
    split = await bob.holds(show, best={"count": 4, "together": False})

    assert (refused.status_code, problem(refused)["code"]) == (409, "sold_out")
    assert len(labels(split)) == 4
    assert split.json()["together"] is False
    assert "groups" in split.json()["why"]


async def test_the_same_key_gives_the_same_answer(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20)

    answers = await asyncio.gather(*(alice.holds(show, best={"count": 2}, key="once") for _ in range(10)))

    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    assert (await alice.get(f"/shows/{show}/seats")).json()["states"].count("H") == 2


async def test_the_same_key_for_another_wish_is_refused(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(20)
    await alice.holds(show, best={"count": 2}, key="other")

    refused = await alice.holds(show, best={"count": 3}, key="other")

    assert (refused.status_code, problem(refused)["code"]) == (422, "key_reused")
