"""Forged codes by the thousand, against the keys of a real box office: none opens a door (R30, attack 29).

7 000 by signature and by a gate's pack, 140 over HTTP; a million and 14 000 with --full.
"""

import asyncio
import time
from base64 import b64decode
from collections import Counter

from holdfast.checkin.offline import OfflineGate, open_pack
from holdfast.checkin.scan import OPENING_VERDICTS, Way
from holdfast.tickets import BadCode, read_code
from tests.support.box_office import Office
from tests.support.forged_codes import Forger
from tests.support.gates import DEVICE, PUBLIC, a_pass, made, scan
from tests.support.restartable_office import an_admin
from tests.support.shows import API, Fan

FORGERIES, FORGERIES_FULL = 7_000, 1_000_000
SENT, SENT_FULL = 140, 14_000
GENUINE = 20
AT_ONCE = 8


async def test_no_forged_code_opens_a_door(stage: Office, is_full: bool) -> None:
    show = await stage.a_show(seats=GENUINE, price_minor=0, owner_seats_max=GENUINE)
    (fan,), admin = await stage.fans(1), await an_admin(stage)
    codes = await genuine(fan, show)
    code = (await made(admin, a_pass(show)))["code"]
    login = {"code": code, "device_key": PUBLIC}
    signed_in = (await stage.api.post(f"{API}/gate/login", json=login)).json()
    device = Fan(0, signed_in["access_token"], stage.api)
    keys = {int(key_id): b64decode(key) for key_id, key in signed_in["keys"].items()}
    pack = open_pack(
        b64decode((await device.get("/gate/pack")).json()["pack"]), DEVICE.private_bytes_raw(), keys
    )
    gate, forger = OfflineGate(pack), Forger(codes, seed=29)

    by_themselves = await asyncio.to_thread(
        read_all, forger, keys, gate, FORGERIES_FULL if is_full else FORGERIES
    )
    over_http = await send_all(device, forger, SENT_FULL if is_full else SENT)

    print(by_themselves, over_http, sep="\n")
    assert gate.memory.admitted == {}
    for one in codes:  # they were good all the while
        assert read_code(one, keys)
        assert (await scan(device, code=one))["verdict"] == "admitted"
    (counted,) = (await device.get("/gate/counts")).json()["shows"]
    assert counted["used"] == GENUINE


async def genuine(fan: Fan, show: int) -> list[str]:
    codes = []
    for _ in range(GENUINE):
        booking = (await fan.holds(show, best={"count": 1})).json()["booking_id"]
        (ticket,) = (await fan.get(f"/bookings/{booking}/tickets")).json()["tickets"]
        codes.append(str(ticket["code"]))
    return codes


def read_all(forger: Forger, keys: dict[int, bytes], gate: OfflineGate, count: int) -> str:
    """The two checks of a code: its signature, and the gate's pack."""
    ways: Counter[str] = Counter()
    now, spent_s = time.time(), 0.0
    for _ in range(count):
        way, code = forger.next()
        began = time.perf_counter()
        try:
            read_code(code, keys)
        except BadCode:
            ways[way] += 1
        else:
            raise AssertionError(f"{way}: {code} is signed")
        verdict = gate.decide(code, Way.ENTRY, now).verdict
        spent_s += time.perf_counter() - began
        assert verdict not in OPENING_VERDICTS, f"{way}: {code} is {verdict}"
    rows = "\n".join(f"  {number:>9,} {way}" for way, number in ways.items())
    return f"{count:,} forgeries, 0 taken; {count / spent_s:,.0f} a second, each read twice\n{rows}"


async def send_all(device: Fan, forger: Forger, count: int) -> str:
    codes = [forger.next()[1] for _ in range(count)]
    began = time.perf_counter()
    for start in range(0, count, AT_ONCE):
        pages = await asyncio.gather(*(scan(device, code=code) for code in codes[start : start + AT_ONCE]))
        assert {(page["verdict"], page["reason"]) for page in pages} == {("refused", "unknown")}
    return f"{count:,} over HTTP, 0 let in; {count / (time.perf_counter() - began):,.0f} a second"
