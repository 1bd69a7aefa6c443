"""The simulator against the real system: the same people, the service times measured on the spot (R38).

Payments are slow on purpose, and few go at once: the sale's length is then made by what the simulator models,
not by how fast this machine is.
"""

from dataclasses import replace
from typing import Any

import pytest

from holdfast.simulation import Scenario
from holdfast.simulation.outcome import summarize
from holdfast.simulation.sale import run_sale
from tests.support.box_office import office
from tests.support.gateway_state import bank_of
from tests.support.real_onsale import measure_service, run_real_sale
from tests.support.shows import a_layout

AGREES_WITHIN = 0.15
HALL = Scenario(
    people=150,
    seats=200,
    party="2",
    early=0.5,
    arrivals="uniform",
    arrive_s=2,
    waiting_room=False,
    choose_s=0.3,
    checkout_s=0.5,
    spread=0.3,
    retry_s=0.5,
    abandon=0,
    decline=0,
    hold_s=120,
    patience_s=60,
)


async def test_time_to_sell_out_and_median_wait_agree(is_full: bool) -> None:
    scenario = replace(HALL, people=6_000, seats=10_000, arrive_s=30, retry_s=5) if is_full else HALL
    links, slow_s = (64, 0.4) if is_full else (8, 0.4)
    settings: dict[str, Any] = {
        "gateway_links_max": links,
        "gateway_timeout_ms": 120_000,
        "request_timeout_s": 120,
    }
    async with office(web=1, work=True, **settings) as house, bank_of(house.app.config) as bank:
        await bank.behaves(slow=1.0, slow_s=slow_s)
        warm, show = await house.a_show(), await house.a_show(layout=a_layout(scenario.seats, row=100))
        fans = await house.fans(scenario.people)
        times = await measure_service(house, warm, fans[0])
        real = await run_real_sale(house, scenario, show, fans)

    measured = replace(
        scenario,
        payments_at_once=links,
        payment_s=times.gateway_s,
        checkout_s=scenario.checkout_s + times.around_gateway_s,
    )
    simulated = summarize(run_sale(measured))
    print(f"measured: {times}")
    print(f"sold out after {real.sold_out_s:.2f} s, simulated {simulated.sold_out_s:.2f} s")
    print(f"median wait {real.median_wait_s:.2f} s, simulated {simulated.wait_to_ticket_s['p50']:.2f} s")

    assert real.unexpected == []
    assert (real.seats_sold, simulated.seats_sold) == (scenario.seats, scenario.seats)
    if is_full:  # by hand, on a quiet machine
        assert simulated.sold_out_s == pytest.approx(real.sold_out_s, rel=AGREES_WITHIN)
        assert simulated.wait_to_ticket_s["p50"] == pytest.approx(real.median_wait_s, rel=AGREES_WITHIN)
