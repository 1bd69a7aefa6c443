"""R9, R13, R14: one wins, the others get the taken seats and free alternatives."""

from collections.abc import Callable
from typing import Any

from holdfast.app import App
from tests.support.own_engines import hold
from tests.support.show_fixture import an_owner
from tests.support.shows import Fan, problem
from tests.support.wait import until


async def test_the_first_holds_it(alice: Fan, a_show: Callable[..., Any]) -> None:
    show = await a_show(50)

    held = await alice.holds(show, "C-4", "C-5")

    assert held.status_code == 201, held.text
    booking = held.json()
    assert booking["state"] == "held"
    assert [seat["label"] for seat in booking["seats"]] == ["C-4", "C-5"]
    assert booking["amount"] == 3000


async def test_the_second_gets_the_taken_seats_and_alternatives(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(50)
    await alice.holds(show, "C-4", "C-5")
    await bob.get(f"/shows/{show}/seats")

    refused = await bob.holds(show, "C-5", "C-6")

    assert refused.status_code == 409
    body = problem(refused)
    assert body["code"] == "seats_taken"
    assert body["taken"] == ["C-5"]
    assert 1 <= len(body["alternatives"]) <= 3
    assert all(len(group) == 2 for group in body["alternatives"])


async def test_a_client_that_never_read_the_map_gets_alternatives_too(
    alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    show = await a_show(50)
    await alice.holds(show, "C-4", "C-5")

    body = problem(await bob.holds(show, "C-4", "C-5"))

    assert body["taken"] == ["C-4", "C-5"]
    assert len(body["alternatives"]) == 3


async def test_alternatives_are_free_although_another_process_sold_seats_meanwhile(
    app: App, alice: Fan, bob: Fan, a_show: Callable[..., Any]
) -> None:
    """This process has read the map before: seats that were held elsewhere since look free in it."""
    show = await a_show(50)
    await bob.get(f"/shows/{show}/seats")
    await alice.holds(show, "A-1")
    await hold(app, show, an_owner(), 40, 41)

    body = problem(await bob.holds(show, "E-1", "E-2"))
    assert body["taken"] == ["E-1", "E-2"]
    offered = {label for group in body["alternatives"] for label in group}
    assert offered
    assert not offered & {"E-1", "E-2"}

    await hold(app, show, an_owner(), *range(42, 50))
    await until(lambda: _is_fresh(app, show, bob))
    free = set(await _free(bob, show))
    body = problem(await bob.holds(show, "E-1", "E-2"))
    assert all(set(group) <= free for group in body["alternatives"])
    assert (await bob.holds(show, *body["alternatives"][0])).status_code == 201


async def _free(fan: Fan, show: int) -> list[str]:
    states = (await fan.get(f"/shows/{show}/seats")).json()["states"]
    return [f"{'ABCDE'[seat // 10]}-{seat % 10 + 1}" for seat, code in enumerate(states) if code == "A"]


async def _is_fresh(app: App, show: int, fan: Fan) -> bool:
    """The map that this process returns is the newest."""
    newest = await app.seatmap.newest(show)
    return bool((await fan.get(f"/shows/{show}/seats")).json()["version"] == newest.version)
