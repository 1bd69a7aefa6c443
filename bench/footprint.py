"""What a purchase leaves behind: bytes in tables and in the log, and the memory of the processes.

`holdfast capacity` computes with these figures; a test compares its coefficients with the results.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from bench.figure import Figure
from bench.purchases import buy
from bench.session import Session
from holdfast.engines.postgres import Queries
from tests.support.box_office import Office, office
from tests.support.shows import a_layout
from tests.support.wait import until

Q = Queries("bench", "footprint_queries")

PURCHASES = 5_000  # of two seats each
PURCHASES_SHORT = 200  # only to see that the bench works
SEATS_PER_ROW = 100
ACCOUNTS = 1_000
SETTLED_WITHIN_S = 120
MAP_SEATS = 50_000
# Rows of these are deleted after a time (docs/operating/retention.md); the others stay with their booking.
PASSING = {"consumed_fact", "fact_log", "gateway_webhook", "idempotent_response", "notice", "outbox"}
PASSING |= {"owner_count", "stored_message", "webhook_delivery", "webhook_try"}


async def measure_footprint(session: Session) -> list[Figure]:
    purchases = PURCHASES if session.seconds_max is None else PURCHASES_SHORT
    async with office(requests_per_second_max=0) as house:
        session.report(f"{purchases} purchases, and what they leave behind")
        found = await _measure(house, purchases)
    print(f"footprint: {found}")
    (session.results / "footprint.json").write_text(json.dumps(found, indent=2) + "\n")
    return []


async def _measure(house: Office, purchases: int) -> dict[str, float]:
    tokens = house.folder.path / "tokens"
    tokens.write_text("\n".join(fan.token for fan in await house.fans(ACCOUNTS)) + "\n")
    show = await house.a_show(layout=a_layout(2 * purchases, row=SEATS_PER_ROW), owner_seats_max=1000)
    map_bytes = await _map_bytes(house)
    await house.app.seatmap.rebuild(show, "bench")
    tables, log = await _table_bytes(house), await _log_bytes(house)
    hall = {"shows": 1, "pairs": purchases, "pairs_per_row": SEATS_PER_ROW // 2}
    await buy(house.url, tokens, show, seconds=300, **hall)
    await until(lambda: _is_settled(house), within_s=SETTLED_WITHIN_S)
    grown = {name: size - tables.get(name, 0) for name, size in (await _table_bytes(house)).items()}
    passing = sum(size for name, size in grown.items() if name in PASSING)
    web = [house.process_id(f"web-{number}") for number in (1, 2)]
    return {
        "purchases": purchases,
        "seats_per_purchase": 2,
        "bytes_per_purchase": round((sum(grown.values()) - passing) / purchases),
        "passing_bytes_per_purchase": round(passing / purchases),
        "log_bytes_per_purchase": round((await _log_bytes(house) - log) / purchases),
        "map_bytes_per_seat": round(map_bytes / MAP_SEATS, 2),
        "web_worker_mb": round(max(_resident_mb(pid) for pid in web), 1),
        "work_mb": round(_resident_mb(house.process_id("work-1")), 1),
        "valkey_mb": round(_resident_mb(house.process_id("valkey")), 1),
    }


async def _map_bytes(house: Office) -> float:
    show = await house.a_show(layout=a_layout(MAP_SEATS, row=SEATS_PER_ROW))
    before = await _valkey_bytes(house)
    await house.app.seatmap.rebuild(show, "bench")
    return await _valkey_bytes(house) - before


async def _valkey_bytes(house: Office) -> float:
    stats = await house.app.redis.call("INFO", "memory")
    if isinstance(stats, Mapping):
        return float(stats["used_memory"])
    text = stats.decode() if isinstance(stats, bytes) else str(stats)
    return float(text.partition("used_memory:")[2].split()[0])


async def _table_bytes(house: Office) -> dict[str, int]:
    return {row["name"]: row["bytes"] for row in await house.app.postgres.fetch(Q.table_bytes)}


async def _log_bytes(house: Office) -> int:
    return int(await house.app.postgres.fetchval(Q.log_bytes))


async def _is_settled(house: Office) -> bool:
    return not await house.app.postgres.fetchval(Q.facts_waiting)


def _resident_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
