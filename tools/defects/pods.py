"""Houses with several databases, and the archive."""

from tools.defects.mutant import undo

PODS = "tests/stores/test_pods.py"
OPERATING = "tests/stores/test_pods_operating.py"
BACKUP = "tests/stores/test_pods_operating_backup.py"
ARCHIVE = "tests/stores/test_archive.py"
LAYOUT = "tests/stores/test_pods_layout.py"
LETTERS = "tests/stores/test_pods_letters.py"
UPGRADE = "tests/stores/test_pods_upgrade.py"
DEAD_MOVER = "tests/stores/test_pods_dead_mover.py"
MOVED = "tests/stores/test_pods_moved.py"
FUNCTIONS = "src/holdfast/pods/functions.sql"
MOVE = "src/holdfast/pods/move.py"

MUTANTS = (
    undo(
        "a database sells shows of another one to a router with an old directory",
        f"{PODS} -k 'home_refuse or lose_nothing'",
        (FUNCTIONS, "    IF v_show IS NOT NULL THEN\n", "    IF false THEN\n"),
    ),
    undo(
        "a restored pod sells a show that was moved away since",
        f"{PODS} -k restored_pod",
        (
            FUNCTIONS,
            "OR coalesce(directory.epoch, 1) <> coalesce(copy.epoch, 1);",
            "OR directory.epoch <> copy.epoch;",
        ),
    ),
    undo(
        "a pod sells a show that was fenced after an earlier transaction had looked at it",
        f"{PODS} -k looked_at_again",
        (
            FUNCTIONS,
            "set_config('holdfast.shows_here', v_seen, true)",
            "set_config('holdfast.shows_here', v_seen, false)",
        ),
    ),
    undo(
        "two pods sell a show whose switch got no reply",
        f"{PODS} -k lost_reply",
        (
            MOVE,
            '        await self._timed("switch", self._switch())\n',
            """        try:
            await self._timed("switch", self._switch())
        except BaseException:
            await self._old.execute(Q.remove_fence, self._show_id, self._epoch)
            raise
""",
        ),
    ),
    undo(
        "a mover that gives up opens a show that another one copies",
        f"{PODS} -k one_mover",
        (MOVE, "if not await home.fetchval(Q.try_lock_place, show_id):", "if False:"),
    ),
    undo(
        "a show that was left closed opens before the change of its hall has arrived",
        f"{LAYOUT} -k left_closed",
        (MOVE, "            if owner.pod != HOME:\n", "            if False:\n"),
    ),
    undo(
        "a fact of another database with the same number is tried again",
        f"{LETTERS} -k in_their_database",
        ("src/holdfast/outbox/every_pod.py", "        if len(owners) > 1:\n", "        if False:\n"),
    ),
    undo(
        "an upgrade keeps changes that come from home from a pod's consumers",
        f"{UPGRADE} -k facts_of_the_pod",
        (
            "src/holdfast/bookings/functions.sql",
            """ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_changed_sale;
ALTER TABLE sale ENABLE ALWAYS TRIGGER publish_cancelled_sale;
""",
            "",
        ),
    ),
    undo(
        "a show is moved from a restored database without its bookings",
        f"{DEAD_MOVER} -k TestRestored",
        (MOVE, "    if not await database.fetchval(Q.has_copy, show_id, owner.epoch):\n", "    if False:\n"),
    ),
    undo(
        "one closed show keeps the refunds and payments of all others",
        f"{DEAD_MOVER} -k carried_on",
        ("src/holdfast/refunds/queries.sql", " AND show_is_here(show_id)", ""),
        (
            "src/holdfast/payments/functions_polling.sql",
            """             AND show_is_here(show_id)
        ORDER BY due_at
           LIMIT v_polls
""",
            """        ORDER BY due_at
           LIMIT v_polls
""",
        ),
    ),
    undo(
        "a webhook is acknowledged where its payment is not any more",
        f"{MOVED} -k old_directory",
        (
            "src/holdfast/payments/webhooks.py",
            "        if stored.verdict is WebhookVerdict.ELSEWHERE:\n",
            "        if stored.verdict is None:\n",
        ),
    ),
    undo(
        "guests who bought in a pod are deleted at home",
        f"{BACKUP} -k bought_in_a_pod",
        ("src/holdfast/accounts/retention.py", "        if not pods:\n", "        if pods is not None:\n"),
    ),
    undo(
        "the audit reports shows that moved",
        f"{OPERATING} -k moved_is_clean",
        (
            "src/holdfast/audit/queries.sql",
            "           AND id > coalesce(moves_until, 0) AND",
            "           AND",
        ),
    ),
    undo(
        "the ledgers of a worker take turns in one series",
        f"{OPERATING} -k series_of_its_own",
        (
            "src/holdfast/engines/metrics.py",
            '            labels["pod"] = pod\n',
            "            pass\n",
        ),
    ),
    undo(
        "a show that changed after its files were written is deleted",
        f"{ARCHIVE} -k changed_after",
        (
            "src/holdfast/archive/store.py",
            "            if await self._is_unchanged(connection, found):\n",
            "            if found:\n",
        ),
        (
            "src/holdfast/archive/store.py",
            "                if not await _is_as_written(connection, manifest):\n",
            "                if not manifest:\n",
        ),
    ),
    undo(
        "an archived sale is opened again with all its seats free",
        f"{ARCHIVE} -k opened_again",
        (
            "src/holdfast/bookings/functions_retention.sql",
            "    RAISE EXCEPTION 'the sale of show % is in the archive', NEW.show_id\n"
            "        USING ERRCODE = 'object_not_in_prerequisite_state';\n",
            "    RETURN NEW;\n",
        ),
    ),
)
