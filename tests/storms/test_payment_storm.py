"""A gateway that loses answers and repeats itself, processes killed twenty times: no money is lost (R21)."""

import time
from dataclasses import dataclass
from functools import partial

import pytest

from tests.support.box_office import Office, office
from tests.support.buyers import Plan, Report
from tests.support.buying import buying
from tests.support.desk import desk_equals_ledger, owned
from tests.support.gateway_state import Bank, bank_of
from tests.support.money_check import late_refunds, paid_twice, sold_twice, unsettled, untrue
from tests.support.shows import Fan, a_layout
from tests.support.wait import until

FAULTS = {
    "timeout_paid": 0.05,
    "timeout_unpaid": 0.05,
    "decline": 0.10,
    "duplicate_webhook": 0.05,
    "late_webhook": 0.05,
    "never_webhook": 0.02,
}
NO_FAULTS = dict.fromkeys(FAULTS, 0.0)
MORTALS = ("web-1", "work-1", "web-2")
SETTLED_WITHIN_S = 60.0
UNDER_WAY = """
SELECT (SELECT count(*) FROM payment WHERE show_id = $1 AND due_at IS NOT NULL)
     + (SELECT count(*) FROM refund WHERE show_id = $1 AND state = 'requested')
     + (SELECT count(*) FROM booking WHERE show_id = $1 AND state IN ('held', 'paying'))
"""


@dataclass(frozen=True)
class Size:
    purchases: int
    seats: int
    connections: int
    kills: int
    hold_ttl_s: int
    buffer_s: int
    grace_s: int
    patience_s: float

    @property
    def late_s(self) -> float:
        """The bank decides after the seats were released."""
        return self.hold_ttl_s + self.buffer_s + self.grace_s + 3.0


FULL = Size(5_000, 2_000, 80, 20, hold_ttl_s=20, buffer_s=10, grace_s=5, patience_s=12.0)
SMALL = Size(300, 120, 40, 3, hold_ttl_s=4, buffer_s=2, grace_s=1, patience_s=4.0)


@pytest.fixture(scope="module")
def size(is_full: bool) -> Size:
    return FULL if is_full else SMALL


async def test_every_captured_payment_is_one_booking_or_one_refund(size: Size) -> None:
    async with (
        office(
            payment_buffer_s=size.buffer_s, payment_grace_s=size.grace_s, gateway_timeout_ms=2000
        ) as stage,
        bank_of(stage.app.config) as bank,
    ):
        show_id = await stage.a_show(
            layout=a_layout(size.seats, row=20), hold_ttl_s=size.hold_ttl_s, owner_seats_max=1000
        )
        desk = await owned(stage.app, stage.api, show_id)
        people = await stage.fans(size.purchases // 10)
        await bank.behaves(**FAULTS, late_s=size.late_s, seed=int(time.time()))

        report, kills = await stormed(stage, size, plan_for(stage, size, show_id, people))
        await bank.behaves(**NO_FAULTS)
        healed_at = time.monotonic()
        await until(partial(all_is_settled, stage, bank, show_id), within_s=SETTLED_WITHIN_S)
        settled_s = time.monotonic() - healed_at
        await until(partial(nothing_is_under_way, stage, show_id), within_s=size.hold_ttl_s + 60)

        taken = await bank.payments()
        late, robbed = await late_refunds(stage, show_id)
        doubly = await sold_twice(stage, show_id)
        confirmed = sum(deal.confirmed for deal in report.deals)
        print(
            f"\n{len(report.deals)} purchases on {size.seats} seats in {report.ended - report.began:.0f} s, "
            f"{kills} kills, {report.dropped} dropped connections: {report.ends}\n"
            f"the gateway took {sum(one.is_captured for one in taken)} payments of {len(taken)}, gave back "
            f"{sum(one.refunded_minor > 0 for one in taken)}; {confirmed} buyers got 'confirmed'\n"
            f"everything captured was booked or given back {settled_s:.1f} s after the faults had ended\n"
            f"late refunds: {late}; of bookings that still waited for their money: {robbed}; "
            f"seats sold twice: {len(doubly)}"
        )
        assert not report.broken, (report.broken[0], stage.last_words())
        assert kills == size.kills
        assert (robbed, doubly) == (0, [])
        assert await paid_twice(taken) == []
        assert await untrue(stage, show_id, report.deals) == []
        assert confirmed > size.seats // 4
        await stage.settled()
        await until(partial(desk_equals_ledger, stage.app, stage.url, desk), within_s=60)


def plan_for(stage: Office, size: Size, show_id: int, people: list[Fan]) -> Plan:
    return Plan(
        url=stage.url,
        tokens=[fan.token for fan in people],
        show=show_id,
        seats=list(a_layout(size.seats, row=20).labels),
        connections=size.connections,
        purchases=size.purchases,
        patience_s=size.patience_s,
    )


async def stormed(stage: Office, size: Size, plan: Plan) -> tuple[Report, int]:
    """The buyers' responses, while web and worker processes were killed in turn."""
    kills = 0
    async with buying(stage.folder.path, plan) as people:
        for n in range(size.kills):
            await people.done((n + 1) * size.purchases // (size.kills + 2))
            name = MORTALS[n % len(MORTALS)]
            killed = stage.kill(name)
            await stage.back(name, after=killed)
            kills += 1
        return await people.report, kills


async def all_is_settled(stage: Office, bank: Bank, show_id: int) -> bool:
    return not await unsettled(stage, show_id, await bank.payments())


async def nothing_is_under_way(stage: Office, show_id: int) -> bool:
    return not await stage.app.postgres.fetchval(UNDER_WAY, show_id)
