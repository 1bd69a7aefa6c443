"""Every revision of a show has permanent terms; a booking records the revision it was held under."""

import asyncio
from collections.abc import Callable
from typing import Any

import asyncpg
import msgspec
import pytest

from holdfast.app import App
from holdfast.bookings.view import booking_page, seat_lines
from holdfast.catalogue import Catalogue
from holdfast.organisers.show_forms import ShowChange
from holdfast.organisers.shows_store import ShowEditor
from holdfast.pricing import RefundPolicy, RefundStep, Terms
from holdfast.pricing.terms import DEFAULT_REFUND_POLICY, DEFAULT_TERMS
from holdfast.web.caller import Scope
from tests.support.show_fixture import Till, a_till, an_owner

AShow = Callable[..., Any]
DEAR = Terms(
    fee_minor=100,
    fee_bp=250,
    tax_bp=700,
    refund_policy=RefundPolicy(steps=(RefundStep(hours_before=3, percent=80),), keep_fee=True),
    card_seats_max=4,
)


def schedule(app: App) -> ShowEditor:
    return ShowEditor(app.postgres, Catalogue(app.postgres), app.config, Scope(0, is_admin=True))


async def revisions(app: App, show_id: int) -> list[tuple[int, int]]:
    rows = await app.postgres.fetch(
        "SELECT revision, fee_minor FROM show_terms WHERE show_id = $1 ORDER BY revision", show_id
    )
    return [tuple(row) for row in rows]


async def test_a_show_on_sale_knows_its_terms_and_has_its_lines_ready(app: App, a_show: AShow) -> None:
    show = await Catalogue(app.postgres).show_on_sale(await a_show(sold_on=DEAR))

    assert show.terms == DEAR
    assert show.lines == tuple(DEAR.lines(price) for price in show.prices)


async def test_every_change_of_a_show_has_terms_of_its_own(app: App, a_show: AShow) -> None:
    show_id, desk = await a_show(sold_on=DEAR), schedule(app)

    await desk.change_show(show_id, ShowChange(fee_minor=300))
    await desk.change_show(show_id, ShowChange(owner_seats_max=3))
    await desk.change_show(show_id, ShowChange(cancelled=True))

    assert await revisions(app, show_id) == [(1, 100), (2, 300), (3, 300), (4, 300)]
    catalogue = Catalogue(app.postgres)
    show = await catalogue.show_on_sale(show_id)
    assert await catalogue.terms(show, 1) == DEAR
    assert await catalogue.terms(show, 4) is show.terms


async def test_changes_at_the_same_time_all_happen_and_none_is_lost(app: App, a_show: AShow) -> None:
    """A change that waits for the lock of a show must continue from the terms of the change before it."""
    show_id, desk = await a_show(sold_on=DEAR), schedule(app)
    changes = [
        ShowChange(fee_minor=200),
        ShowChange(fee_bp=0),
        ShowChange(tax_bp=1900),
        ShowChange(card_seats_max=None),
        ShowChange(prices={"Standard": 5000}),
        ShowChange(refund_policy=DEFAULT_REFUND_POLICY),
    ]

    await asyncio.gather(*(desk.change_show(show_id, change) for change in changes))

    show = await Catalogue(app.postgres).show_on_sale(show_id)
    assert show.terms == Terms(fee_minor=200, tax_bp=1900)
    assert (show.revision, show.prices) == (7, (5000,))
    assert [revision for revision, _ in await revisions(app, show_id)] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "statement",
    ["UPDATE show_terms SET fee_minor = 1 WHERE show_id = $1", "DELETE FROM show_terms WHERE show_id = $1"],
)
async def test_a_promised_policy_cannot_be_overwritten(app: App, a_show: AShow, statement: str) -> None:
    show_id = await a_show()

    with pytest.raises(asyncpg.CheckViolationError, match="promised to buyers"):
        await app.postgres.execute(statement, show_id)


async def test_an_event_without_a_policy_has_the_default_one(app: App, a_show: AShow) -> None:
    """The default of the table and that of the program are the same."""
    stored = await app.postgres.fetchval(
        "SELECT refund_policy FROM event JOIN show ON show.event_id = event.id WHERE show.id = $1",
        await a_show(),
    )

    assert msgspec.json.decode(stored, type=RefundPolicy) == DEFAULT_REFUND_POLICY


class TestABooking:
    @pytest.fixture
    async def till(self, app: App) -> Till:
        return await a_till(app, sold_on=DEAR)

    async def test_reports_the_revision_it_was_held_under(self, till: Till) -> None:
        booking = await till.opened(3)
        await schedule(till.app).change_show(till.show, ShowChange(fee_minor=0))
        later = await till.opened(4, revision=2)

        assert (booking.revision, later.revision) == (1, 2)
        assert (await till.booking(booking.number)).revision == 1

    async def test_reports_it_also_after_losing_a_race(self, till: Till) -> None:
        """The careful way of open_holds: a lapsed booking stands on one of the seats."""
        lapsed = await till.opened(3)
        await till.lapse(lapsed.number)

        booking = await till.opened(3, 4, owner_id=an_owner())

        assert (booking.seats, booking.revision) == ((3, 4), 1)

    async def test_of_blocked_seats_has_no_revision(self, till: Till) -> None:
        number = await till.ledger.block(till.show, [5], "stage", an_owner())

        assert isinstance(number, int)
        assert (await till.booking(number)).revision == 0

    async def test_from_before_there_were_terms_is_all_base(self, till: Till) -> None:
        booking = msgspec.structs.replace(await till.opened(3), revision=0)
        catalogue = Catalogue(till.postgres)
        show = await catalogue.show_on_sale(till.show)

        page = booking_page(booking, show, await catalogue.terms(show, 0))

        assert await catalogue.terms(show, 0) == DEFAULT_TERMS
        assert (page.amount, page.base_minor, page.fee_minor, page.tax_minor) == (1500, 1500, 0, 0)

    async def test_at_another_price_than_the_shows_has_its_own_lines(self, till: Till) -> None:
        """A guest list: seats that cost others 15.00, for nothing; and some for half."""
        guest, half = await till.opened(3, price_minor=0), await till.opened(4, price_minor=750)
        show = await Catalogue(till.postgres).show_on_sale(till.show)

        assert [line.fee_minor for line in seat_lines(guest, show, show.terms)] == [0]
        assert seat_lines(half, show, show.terms) == [DEAR.lines(750)]

    async def test_at_the_shows_price_has_lines_that_are_only_looked_up(self, till: Till) -> None:
        booking = await till.opened(3, 4)
        show = await Catalogue(till.postgres).show_on_sale(till.show)

        assert all(line is show.lines[0] for line in seat_lines(booking, show, show.terms))

    async def test_reads_terms_of_an_old_revision_once(self, till: Till) -> None:
        catalogue, before = Catalogue(till.postgres), await till.opened(3)
        await schedule(till.app).change_show(till.show, ShowChange(fee_minor=0))
        show = await catalogue.show_on_sale(till.show)

        first = await catalogue.terms(show, before.revision)

        assert await catalogue.terms(show, before.revision) is first
        assert first == DEAR
