"""Holds, seat maps, restores of the ledger and requests that block others."""

from tools.defects.mutant import undo

HOLDS = "src/holdfast/holds"
LOCKED = "tests/stores/test_locked_show.py"
LOST = "tests/stores/test_seam_redis_lost.py"
RESTORED = "tests/stores/test_restored_ledger.py"
TWO_WANT = "tests/journeys/test_two_want_the_same_seat.py"
NO_SHORT_WAIT = (
    "src/holdfast/engines/show_batch.py",
    "        results = await self._send_once(items, SHARED_LOCK_WAIT_MS)\n",
    "        results = await self._send_once(items, 60_000)\n",
)

MUTANTS = (
    undo(
        "a restored ledger issues numbers and codes a second time",
        f"{RESTORED} -k issued_twice",
        (
            "src/holdfast/bookings/functions.sql",
            "    SELECT (((date_part('epoch', clock_timestamp()) - 1577836800) * 16)::bigint << 13)\n"
            "           | (nextval('ledger_number') & 8191);\n",
            "    SELECT nextval('ledger_number');\n",
        ),
    ),
    undo(
        "a ticket lost in a restore is refused as a forgery",
        f"{RESTORED} -k issued_twice",
        (
            "src/holdfast/checkin/functions.sql",
            "                WHEN (p_ticket).serial IS NULL THEN 'lost_in_restore'\n",
            "                WHEN (p_ticket).serial IS NULL THEN 'unknown'\n",
        ),
    ),
    undo(
        "a ledger that went back in time is served",
        f"{RESTORED} -k before_the_restore_is_completed",
        (
            "src/holdfast/runtime/workers.py",
            "        await refuse_older_ledger(connection, config.redis_url, Path(config.data_dir))\n",
            "",
        ),
    ),
    undo(
        "a running process does not notice that the ledger went back",
        f"{RESTORED} -k running_process",
        (
            "src/holdfast/backup/mark.py",
            "        if found:\n            log.error(",
            "        if False:\n            log.error(",
        ),
    ),
    undo(
        "a completed restore trusts maps, facts and tokens of before",
        f"{RESTORED} -k distrusts",
        (
            "src/holdfast/backup/store.py",
            "        await connection.execute(Q.distrust_caches)\n",
            "",
        ),
    ),
    undo(
        "holds of all shows wait for the lock of one",
        f"{LOCKED} -k another_show",
        (
            "src/holdfast/bookings/functions_opening.sql",
            "                 ORDER BY show_id FOR SHARE SKIP LOCKED) AS sale\n",
            "                 ORDER BY show_id FOR SHARE) AS sale\n",
        ),
        NO_SHORT_WAIT,
    ),
    undo(
        "payments and refunds of all shows wait for the lock of one",
        f"{LOCKED} -k another_show",
        NO_SHORT_WAIT,
    ),
    undo(
        "seats of a hold that was refused as busy stay claimed",
        f"{LOCKED} -k back_into_the_sale",
        (
            f"{HOLDS}/service.py",
            '        if opening.is_repeat and outcome == OpeningRefused("locked"):\n',
            '        if outcome == OpeningRefused("locked"):\n',
        ),
    ),
    undo(
        "seat orders are computed while the show is locked",
        "tests/stores/test_rebuild_cost.py -k seat_orders",
        (
            "src/holdfast/seatmap/store.py",
            "        fields = await self.plans.get(show.layout.hash)\n        found, is_ours",
            "        found, is_ours",
        ),
        (
            "src/holdfast/seatmap/store.py",
            "            epoch = max(found, sale.epoch) + 1\n",
            "            epoch = max(found, sale.epoch) + 1\n"
            "            fields = await self.plans.get(show.layout.hash)\n",
        ),
    ),
    undo(
        "a request body is copied again with every piece",
        "tests/rules/test_request_body.py -k copied_once",
        (
            "src/holdfast/web/guards.py",
            "        pieces.append(piece)\n",
            "        pieces = [pieces[0] + piece] if pieces else [piece]\n",
        ),
    ),
    undo(
        "a large body is decoded on the event loop",
        "tests/rules/test_request_body.py -k beside_the_loop",
        (
            "src/holdfast/web/responses.py",
            "await asyncio.to_thread(read, kind, raw) if len(raw) >= OFF_LOOP_BYTES else read(kind, raw)",
            "read(kind, raw)",
        ),
    ),
    undo(
        "a map is written with a step of Python per seat",
        "tests/rules/test_snapshot.py -k without_a_step",
        (
            "src/holdfast/seatmap/snapshot.py",
            "            counts = {chr(code): mine.count(code) for code in CODES}\n",
            "            counts = {chr(code): sum(each == code for each in mine) for code in CODES}\n",
        ),
    ),
    undo(
        "a map that could not be updated is not marked",
        "tests/stores/test_map_updates.py -k TestAnUpdateThatRedisDidNotGet",
        (f"{HOLDS}/map_updates.py", "            await self._mark(show_id)\n", "            pass\n"),
    ),
    undo(
        "only shows with traffic are compared with the ledger",
        f"{LOST} -k every_open_sale",
        (
            f"{HOLDS}/jobs.py",
            "        return list(dict.fromkeys([*self._seen, *busy, *following]))\n",
            "        return list(dict.fromkeys([*self._seen, *busy]))\n",
        ),
    ),
    undo(
        "a difference is rebuilt once by every worker",
        f"{LOST} -k rebuild_the_map_once",
        (
            f"{HOLDS}/jobs.py",
            "        if await self._bookings.mark_map_stale(show_id, epoch):\n",
            "        if await self._bookings.mark_map_stale(show_id) or True:\n",
        ),
    ),
    undo(
        "every worker compares every map",
        f"{LOST} -k one_worker_at_a_time",
        (
            f"{HOLDS}/jobs.py",
            "            if not await self._may_compare():\n",
            "            if False:\n",
        ),
    ),
    undo(
        "a client that never read the map gets no alternatives",
        f"{TWO_WANT} -k never_read",
        (
            f"{HOLDS}/service.py",
            "self._seatmap.fresh(show_id) or await self._seatmap.snapshot_within(MAP_WAIT_S, show_id)",
            "self._seatmap._last.get(show_id)",
        ),
    ),
    undo(
        "alternatives contain seats that were just refused",
        f"{TWO_WANT} -k although_another_process",
        (
            f"{HOLDS}/service.py",
            "self._seatmap.fresh(show_id) or await self._seatmap.snapshot_within(MAP_WAIT_S, show_id)",
            "self._seatmap._last.get(show_id)",
        ),
        (
            f"{HOLDS}/alternatives.py",
            "        states, key = _without(states, taken), (*seats, -1, *taken)\n",
            "        pass\n",
        ),
    ),
    undo(
        "a correction gives a seat that is being paid for an end",
        "tests/stores/test_map_updates.py -k TestACorrection",
        (
            "src/holdfast/bookings/booking.py",
            "                0 if rival.state is BookingState.PAYING else max(1, rival.left_ms),\n",
            "                max(1, rival.left_ms),\n",
        ),
    ),
    undo(
        "layouts are cached by number, whatever their size",
        "tests/stores/test_catalogue.py -k layouts_take_no_more",
        (
            "src/holdfast/engines/cache.py",
            "        return 1 if self._weigh is None else self._weigh(value)\n",
            "        return 1\n",
        ),
    ),
    undo(
        "maps are cached without a limit",
        "tests/stores/test_catalogue.py -k maps_take_no_more",
        (
            "src/holdfast/seatmap/store.py",
            "        while self._last_bytes > self._bytes_max and len(self._last) > 1:\n",
            "        while False:\n",
        ),
    ),
    undo(
        "a dropped layout stays in memory through its maps",
        "tests/stores/test_catalogue.py -k dropped_layout",
        (
            "src/holdfast/seatmap/store.py",
            "        catalogue.on_layout_evicted = self._forget_layout\n",
            "",
        ),
    ),
    undo(
        "the plan of a stadium is computed on the event loop",
        "tests/stores/test_rebuild_cost.py -k does_not_stop_the_process",
        (
            "src/holdfast/seatmap/store.py",
            "        return await run_aside(build_plans, await self._catalogue.layout(layout_hash))\n",
            "        return build_plans(await self._catalogue.layout(layout_hash))\n",
        ),
    ),
)
