"""Seats are chosen twice: in Valkey (choose.lua, orphan.lua) and in Python, while Valkey is away. Both alike.

Random small halls in random states; the same wish put to both gives the same seats, or the same no.
"""

import asyncio
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.app import App
from holdfast.catalogue import OrphanRule
from holdfast.claim import NotEnoughUnits
from holdfast.engines.redis import Redis
from holdfast.holds import BestAvailable, Held, HoldOutcome, NamedSeats, check_orphans, find_best, find_runs
from holdfast.holds.choice import SeatChoice
from holdfast.layouts import Layout, LayoutBody, Prefer
from holdfast.layouts.body import AreaBody, CategoryBody, RowBody, SectionBody
from tests.support.hall_map import a_hall

EXAMPLES_MAX = 250
WISHES_EACH = 8  # put to each hall, all from the same state
BOUNDED = settings(
    max_examples=EXAMPLES_MAX,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
TRAITS = "n" * 12 + "rrwc"  # most seats are plain
CATEGORIES = ("Front", "Standard")


@dataclass(frozen=True)
class Scene:
    layout: Layout
    states: str


@st.composite
def row_bodies(draw: st.DrawFn, place: int) -> RowBody:
    seats = draw(st.integers(1, 14))
    traits = draw(st.text(TRAITS, min_size=seats, max_size=seats))
    numbers = [str(number) for number in range(1, seats + 1)]

    def having(letter: str) -> list[str] | None:
        return [n for n, trait in zip(numbers, traits, strict=True) if trait == letter] or None

    front = draw(st.lists(st.sampled_from(numbers), unique=True, max_size=seats))
    return RowBody(
        label=chr(65 + place),
        seats=numbers,
        at=(draw(st.integers(-4, 4)) / 2, 2.0 + place),
        align=draw(st.sampled_from(["start", "centre", "end"])),
        aisles=draw(st.lists(st.sampled_from(numbers), unique=True, max_size=2)) or None,
        category="Standard",
        categories={"Front": front} if front else {},
        wheelchair=having("w"),
        companion=having("c"),
        restricted=having("r"),
    )


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    rows = [draw(row_bodies(place)) for place in range(draw(st.integers(1, 4)))]
    floor = AreaBody(name="Floor", capacity=3, outline=[(0, 9), (5, 9), (5, 12)], category="Standard")
    body = LayoutBody(
        name="Hall",
        focal=(draw(st.integers(-3, 3)) / 2, 0.0),
        categories=[CategoryBody(name=name, colour="#0072B2") for name in CATEGORIES],
        sections=[SectionBody(name="Stalls", rows=rows)],
        areas=[floor] if draw(st.booleans()) else [],
    )
    layout = Layout.build(body)
    mostly_free = draw(st.sampled_from(["A", "AAAH", "AAB", "AH", "AHHBX"]))
    states = draw(st.text(mostly_free, min_size=layout.seat_count, max_size=layout.seat_count))
    return Scene(layout, states)


wishes = st.builds(
    BestAvailable,
    count=st.integers(1, 10),
    category=st.sampled_from([None, None, 0, 1]),
    prefer=st.sampled_from(list(Prefer)),
    accessible=st.sampled_from([False, False, True]),
    together=st.booleans(),
)


@BOUNDED
@given(scene=scenes(), wishes_of_batch=st.lists(wishes, min_size=WISHES_EACH, max_size=WISHES_EACH))
async def test_best_available_is_the_same_seats_in_both(
    app: App, redis: Redis, scene: Scene, wishes_of_batch: list[BestAvailable]
) -> None:
    states = scene.states.encode()

    for wish in wishes_of_batch:
        hall = await a_hall(redis, scene.layout, scene.states)
        outcome = await hall.ask(wish)
        await redis.call(
            "DEL", *(hall.pool.key(name) for name in ("units", "ends", "owners", "meta", "changes"))
        )

        want = BestAvailable(wish.count, wish.category, wish.prefer, wish.accessible, wish.together)
        assert summarise(outcome) == expected(find_best(scene.layout, states, want), states), (wish, scene)


@BOUNDED
@given(scene=scenes(), wishes_of_batch=st.lists(wishes, min_size=WISHES_EACH, max_size=WISHES_EACH))
async def test_a_batch_of_wishes_is_one_after_the_other(
    app: App, redis: Redis, scene: Scene, wishes_of_batch: list[BestAvailable]
) -> None:
    """What the script caches of a map between wishes is what Python sees in a fresh map."""
    hall = await a_hall(redis, scene.layout, scene.states)
    states = bytearray(scene.states.encode())

    outcomes = await asyncio.gather(
        *(hall.ask(wish, owner_id=owner) for owner, wish in enumerate(wishes_of_batch, 1))
    )

    for wish, outcome in zip(wishes_of_batch, outcomes, strict=True):
        want = BestAvailable(wish.count, wish.category, wish.prefer, wish.accessible, wish.together)
        choice = find_best(scene.layout, bytes(states), want)
        assert summarise(outcome) == expected(choice, bytes(states)), (wish, scene)
        for seat in choice.seats if choice else ():
            states[seat] = ord("H")
    assert await hall.states() == states.decode()


@BOUNDED
@given(scene=scenes(), data=st.data())
async def test_orphan_verdicts_are_the_same_in_both(
    app: App, redis: Redis, scene: Scene, data: st.DataObject
) -> None:
    states = scene.states.encode()
    free = [seat for seat, letter in enumerate(states) if letter == ord("A")]
    if not free:
        return
    for _ in range(WISHES_EACH):
        first = data.draw(st.sampled_from(free))
        nearby = [seat for seat in free if abs(seat - first) <= 6]
        seats = tuple(
            sorted(data.draw(st.lists(st.sampled_from(nearby), min_size=1, max_size=5, unique=True)))
        )
        hall = await a_hall(redis, scene.layout, scene.states)

        outcome = await hall.ask(NamedSeats(seats, OrphanRule.WARN, find_runs(scene.layout, seats)))

        better = getattr(check_orphans(scene.layout, states, seats), "better", None)
        assert isinstance(outcome, Held)
        assert outcome.better == better, (seats, scene)


def summarise(outcome: HoldOutcome) -> object:
    match outcome:
        case Held(seats, _, _, together, leaves_single):
            return seats, together, leaves_single
        case NotEnoughUnits(free):
            return free
    raise AssertionError(outcome)


def expected(choice: SeatChoice | None, states: bytes) -> object:
    if choice is None:
        return states.count(b"A")
    return choice.seats, choice.together, "a single seat left" in choice.why
