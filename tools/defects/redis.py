"""Redis with Sentinel and as a cluster: one dead node, slots that move, fail-overs."""

from tools.defects.mutant import undo

CLUSTER = "tests/stores/test_redis_cluster.py"
SENTINEL = "tests/stores/test_redis_sentinel.py"
NODES = "src/holdfast/engines/redis_cluster.py"

MUTANTS = (
    undo(
        "the doctor only warns of a server for limits that wants another password",
        "tests/stores/test_doctor.py -k has_a_remedy",
        (
            "src/holdfast/runtime/check_redis.py",
            'Finding(what, Severity.FAIL, "refuses us", str(trouble))',
            'Finding(what, Severity.WARN, "not reached", str(trouble))',
        ),
    ),
    undo(
        "one dead node of a cluster sends all shows of a batch to the ledger",
        f"{CLUSTER} -k only_its_shows",
        (
            NODES,
            "                for position in positions:\n"
            "                    replies[position] = down\n"
            "                return\n",
            "                raise\n",
        ),
    ),
    undo(
        "every batch waits for a node that does not reply",
        f"{CLUSTER} -k one_that_hangs",
        (NODES, "            node.is_away = True\n", "            pass\n"),
    ),
    undo(
        "a key that has moved before its slot is not found",
        f"{CLUSTER} -k before_the_slot_has",
        (NODES, "AskingLink(link.connection, link.run_id) if is_asking else link", "link"),
    ),
    undo(
        "ASKING is not repeated for a script that the node does not have",
        f"{CLUSTER} -k before_the_slot_has",
        (
            NODES,
            'pack_commands([("ASKING",), command])',
            'pack_commands([("PING" if command[0] == "EVAL" else "ASKING",), command])',
        ),
    ),
    undo(
        "a slot that has moved is not found again",
        f"{CLUSTER} -k refusal_to_retry",
        (NODES, "                self._owners[slot] = self._node_at(moved, node)\n", ""),
        (
            NODES,
            "                self._load_soon()\n            except AskError",
            "                pass\n            except AskError",
        ),
    ),
    undo(
        "keys on two nodes take the whole node out",
        f"{CLUSTER} -k on_two_nodes",
        (
            NODES,
            "        return isinstance(error, OF_SLOT)\n",
            "        return isinstance(error, AskError)\n",
        ),
    ),
    undo(
        "a map that came over in a fail-over is sold from",
        f"{CLUSTER} -k loses_claims",
        ("src/holdfast/engines/redis.py", "        self.run_id = run_id\n", '        self.run_id = "any"\n'),
    ),
    undo(
        "viewers of a dead node see nothing",
        f"{CLUSTER} -k viewers_of_its_shows",
        ("src/holdfast/seatmap/live.py", "            spent_s += await self._send_from_postgres(away)\n", ""),
    ),
    undo(
        "links go to a primary that is gone",
        f"{SENTINEL} -k goes_on",
        (
            "src/holdfast/engines/redis_sentinel.py",
            "        primary = await self._find_primary()\n",
            "        primary = self._primary or await self._find_primary()\n",
        ),
    ),
    undo(
        "a Redis that is full fails its callers",
        "tests/stores/test_engine_setups.py -k full",
        (
            "src/holdfast/engines/redis.py",
            "UNFIT_KINDS = (OutOfMemoryError, *OF_SLOT)\n",
            "UNFIT_KINDS = OF_SLOT\n",
        ),
    ),
)
