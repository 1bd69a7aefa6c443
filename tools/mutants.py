"""Break payments and limits on purpose, one mutant at a time, and check that tests fail.

    python tools/mutants.py [NAME …]          these mutants, or all: a few minutes
    python tools/mutants.py --sound [NAME …]  the same tests on unchanged code: they pass

Each mutant is a text patch to a copy of the tree in a temporary folder; the tree itself is not touched. The
exit code is 1 if a patch no longer applies or if no test fails.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
COPIED: tuple[str, ...] = ("src", "tests", "bench", "lab", "tools", "docs", "deploy")
COPIED += ("pyproject.toml", "README.md", "SECURITY.md")
TIMEOUT_S = 600
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+?)(?:\[(.*)\])?(?: - .*)?$", re.MULTILINE)
PAYMENTS = "src/holdfast/payments"
STORMS = "tests/storms"
LIMITS = "tests/stores/test_hold_limits.py"


@dataclass(frozen=True)
class Patch:
    file: str
    old: str  # found once
    new: str


@dataclass(frozen=True)
class Mutant:
    name: str
    patches: tuple[Patch, ...]
    tests: tuple[tuple[str, ...], ...]  # arguments of pytest, one run each


NO_RANGE_IN_LEDGER = Patch(
    "src/holdfast/bookings/functions_limits.sql",
    "    v_seats_max  int := coalesce((p_limits).range_seats_max, 2147483647);\n",
    "    v_seats_max  int := 2147483647;\n",
)
NO_RANGE_IN_REDIS = Patch(
    "src/holdfast/holds/limits.lua",
    '  if tonumber(noted[4] or 0) + n > party_seats_max then return {"range_full"} end\n',
    "",
)

ROOM = "src/holdfast/waitingroom"

MUTANTS = (
    Mutant(
        "the house chooses its seed after the commitment",
        (
            Patch(
                f"{ROOM}/draw.py",
                "    if committed.hex() != record.commitment:\n",
                "    if not record.commitment:\n",
            ),
        ),
        (("tests/rules/test_queue_draw.py", "-k", "thousand_seeds"),),
    ),
    Mutant(
        "the cap on people inside is not counted",
        (
            Patch(
                f"{ROOM}/admission.py",
                "    by_cap = inside_max - measured.inside\n",
                "    by_cap = inside_max\n",
            ),
        ),
        (("tests/stores/test_waiting_room.py", "-k", "cap"),),
    ),
    Mutant(
        "a sale that no process measures looks calm",
        (Patch(f"{ROOM}/admission.py", "    if load.processes == 0:\n", "    if load.processes < 0:\n"),),
        (("tests/rules/test_admission.py", "-k", "calm"),),
    ),
    Mutant(
        "the deadline of a beacon is not committed to",
        (Patch(f"{ROOM}/draw.py", ", *fields, beacon.encode(), until)", ", *fields, beacon.encode())"),),
        (("tests/rules/test_queue_draw.py", "-k", "not_otherwise"),),
    ),
    Mutant(
        "a place inside is free before the pass is refused",
        (Patch(f"{ROOM}/guard.py", "END_GRACE_S = 5 ", "END_GRACE_S = 0 "),),
        (("tests/journeys/test_waiting_room.py", "-k", "makes_room"),),
    ),
    Mutant(
        "a hold does not need a pass while Redis is away",
        (
            Patch(
                "src/holdfast/holds/service.py",
                "        if not self._guard.is_open_to_all(request.show.show_id):\n",
                "        if self._scripts is None:\n",
            ),
        ),
        (("tests/stores/test_waiting_room_outage.py", "-k", "without_redis"),),
    ),
    Mutant(
        "no unique key on seats",
        (
            Patch(
                "src/holdfast/migrations/0004_bookings.sql",
                ",\n    CONSTRAINT one_live_booking_per_seat PRIMARY KEY (show_id, seat)\n",
                "\n",
            ),
        ),
        (("tests/stores/test_opening.py", "-k", "one_wins or race"),),
    ),
    Mutant(
        "no compare-and-set on confirm",
        (
            Patch(
                "src/holdfast/bookings/functions_paying.sql",
                "           AND booking.state = 'paying' AND booking.fence = a.fence\n"
                "     RETURNING booking.show_id, booking.number\n    )\n"
                "    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;\n"
                "    IF v_show IS NOT NULL THEN\n",
                "           AND booking.state <> 'confirmed'\n"
                "     RETURNING booking.show_id, booking.number\n    )\n"
                "    SELECT array_agg(show_id), array_agg(number) INTO v_show, v_number FROM moved;\n"
                "    IF v_show IS NOT NULL THEN\n",
            ),
        ),
        (
            ("tests/stores/test_seam.py", "-k", "older_fence"),
            (f"{STORMS}/test_pay_races.py", "-k", "late_money"),
        ),
    ),
    Mutant(
        "webhooks are not deduplicated",
        (
            Patch(
                f"{PAYMENTS}/webhooks.py",
                "            [webhook.event_id for webhook in webhooks],\n",
                "            [f'{webhook.event_id}.{time.monotonic_ns()}' for webhook in webhooks],\n",
            ),
        ),
        (
            (
                "tests/stores/test_incoming_webhooks.py",
                "tests/journeys/test_incoming_webhooks.py",
                "-k",
                "copies",
            ),
        ),
    ),
    Mutant(
        "each attempt at a refund has another key",
        (
            Patch(
                "src/holdfast/refunds/refund.py",
                '        return f"{self.key}_r{self.id}{again}"\n',
                "        return f\"{self.key}_r{self.id}{again}_{__import__('time').monotonic_ns()}\"\n",
            ),
        ),
        (
            ("tests/stores/test_refunds.py", "-k", "same_key or dead_process"),
            (
                f"{STORMS}/test_crash_points.py",
                "--full",
                "-k",
                "gateway.refund:after",
            ),
        ),
    ),
    Mutant(
        "unfinished payments are not continued",
        (
            Patch(
                f"{PAYMENTS}/jobs.py",
                "        room = AT_ONCE_MAX - len(self._under_way)\n",
                "        room = 0\n",
            ),
        ),
        ((f"{STORMS}/test_crash_points.py", "-k", "gateway.charge or ledger.start"),),
    ),
    Mutant(
        "payments are not reconciled",
        (
            Patch(
                f"{PAYMENTS}/reconciliation.py",
                "range(0, len(doubtful), LOOK_UPS_AT_ONCE_MAX)",
                "range(0, 0, LOOK_UPS_AT_ONCE_MAX)",
            ),
        ),
        (("tests/stores/test_reconcile.py",),),
    ),
    Mutant(
        "2xx to a webhook before the commit",
        (
            Patch(
                f"{PAYMENTS}/webhooks.py",
                "        stored = await self._store_webhook(received)\n",
                "        asyncio.ensure_future(self._store_webhook(received))\n"
                "        return WebhookVerdict.WAIT\n"
                "        stored = await self._store_webhook(received)\n",
            ),
        ),
        (("tests/stores/test_incoming_webhooks.py", "-k", "ledger_is_away"),),
    ),
    Mutant(
        "seats are free before the gateway has cancelled",
        (
            Patch(
                f"{PAYMENTS}/saga_runner.py",
                "            charge = await self._call_gateway(step, payment)\n",
                "            if step is PaymentStep.CALL_OFF and now is not DeadlineStatus.LEFT:\n"
                "                payment = await self._release(payment, is_sure=False)\n"
                "            charge = await self._call_gateway(step, payment)\n",
            ),
        ),
        ((f"{STORMS}/test_pay_races.py", "-k", "deadline_comes"),),
    ),
    Mutant(
        "late money is booked without checking the seats",
        (
            Patch(
                "src/holdfast/bookings/functions_paying.sql",
                "(v_booking.state = 'held' OR (v_booking.state = 'expired' AND retake_seats(v_booking)))",
                "(v_booking.state IN ('held', 'expired'))",
            ),
        ),
        (
            ("tests/stores/test_payments.py", "-k", "TestLate"),
            (f"{STORMS}/test_pay_races.py", "-k", "late_money"),
        ),
    ),
    Mutant(
        "an unknown charge is tried again under another key",
        (
            Patch(
                f"{PAYMENTS}/saga_runner.py",
                "                    charge = await self.gateway.charge(self._charge_order(payment))\n",
                "                    charge = await self.gateway.charge(self._charge_order(payment))\n"
                "                    if (charge.answer, charge.reference) == (GatewayAnswer.UNKNOWN, None):\n"
                "                        again = self._charge_order(payment)\n"
                "                        again = replace(again, key=f'{payment.key}0')\n"
                "                        charge = await self.gateway.charge(again)\n",
            ),
        ),
        ((f"{STORMS}/test_crash_points.py", "--full", "-k", "look_up:after and late"),),
    ),
    Mutant(
        "a charge in flight counts as absent",
        (
            Patch(
                f"{PAYMENTS}/saga_runner.py",
                "            if is_charged and charge.answer is GatewayAnswer.ABSENT:\n",
                "            if False:\n",
            ),
        ),
        (("tests/journeys/test_calls_off.py",),),
    ),
    Mutant(
        "a hold without a key does not recognise its own claim",
        (
            Patch(
                f"{PAYMENTS}/saga_runner.py",
                "return isinstance(pool, PoolMap) and str(payment.claim) in (pool.claims or ())",
                "return False",
            ),
        ),
        (("tests/journeys/test_calls_off.py",),),
    ),
    Mutant(
        "the limit of a range is checked before the step, not in it",
        (
            Patch(
                "src/holdfast/holds/service.py",
                '        """The booking, or a refusal."""\n',
                '        """The booking, or a refusal."""\n'
                "        before = await self.bookings._postgres.fetchval(\n"
                "            'SELECT seats FROM party_count WHERE show_id = $1 AND party = $2',\n"
                "            request.show.show_id, request.claim_id.partition('@')[2])\n"
                "        wanted = len(getattr(request.selection, 'seats', ())) or request.selection.count\n"
                "        if (before or 0) + wanted > self._config.range_seats_max:\n"
                "            raise refuse_opening(request, OpeningRefused('range_full'), self._config)\n",
            ),
            NO_RANGE_IN_LEDGER,
            NO_RANGE_IN_REDIS,
        ),
        ((LIMITS, "-k", "two_processes"), (f"{STORMS}/test_bots.py", "-k", "never_exceed")),
    ),
    Mutant(
        "the limit of a range is not in the step of the ledger",
        (NO_RANGE_IN_LEDGER,),
        ((LIMITS, "-k", "TestTheLedgerAlone"),),
    ),
    Mutant(
        "the limit of a range is not in the step of Redis",
        (NO_RANGE_IN_REDIS,),
        ((LIMITS, "-k", "redis_decides_alone"),),
    ),
    Mutant(
        "the cool-down is ignored",
        (
            Patch(
                "src/holdfast/bookings/limits.py",
                "            config.lapse_cooldown_s,\n",
                "            0,\n",
            ),
        ),
        ((LIMITS, "-k", "TestLapses"),),
    ),
    Mutant(
        "every request counts for another guest",
        (
            Patch("src/holdfast/holds/limits.lua", '"!" .. owner', '"!" .. id'),
            Patch("src/holdfast/bookings/limits.py", "config.guest_holds_max or NO_LIMIT", "NO_LIMIT"),
        ),
        ((LIMITS, "-k", "TestGuests"),),
    ),
)


def applies(patch: Patch, root: Path = ROOT) -> bool:
    return (root / patch.file).read_text().count(patch.old) == 1


@contextmanager
def copy_tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="holdfast-mutant-") as name:
        root = Path(name)
        for part in COPIED:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, root / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
            else:
                shutil.copy(source, root / part)
        yield root


def apply(mutant: Mutant, root: Path) -> None:
    for patch in mutant.patches:
        assert applies(patch, root), f"{mutant.name}: {patch.file} has changed; update the mutant"
        file = root / patch.file
        file.write_text(file.read_text().replace(patch.old, patch.new))


def find_failing_tests(mutant: Mutant, root: Path) -> list[str]:
    """Names of the tests that fail there, once each whatever their parameters."""
    found: dict[str, None] = {}
    env = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    for words in mutant.tests:
        command = (sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", *words)
        done = subprocess.run(
            command,
            cwd=root,
            env={**env, "PYTHONPATH": str(root / "src")},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
        found |= dict.fromkeys(name.rpartition("/")[2] for name, _ in FAILED.findall(done.stdout))
    return list(found)


def main(arguments: list[str], mutants: tuple[Mutant, ...] = MUTANTS) -> int:
    is_sound = "--sound" in arguments
    names = [name for name in arguments if name != "--sound"]
    chosen = [mutant for mutant in mutants if not names or any(name in mutant.name for name in names)]
    table = Table("mutant", "as it is" if is_sound else "failing tests", show_lines=True)
    is_good = bool(chosen)
    for mutant in chosen:
        with copy_tree() as root:
            if not is_sound:
                apply(mutant, root)
            failed = find_failing_tests(mutant, root)
        is_good = is_good and bool(failed) != is_sound
        table.add_row(mutant.name, "\n".join(failed) or ("passes" if is_sound else "[red]no test[/]"))
        print(f"{mutant.name}: {len(failed)} tests fail", file=sys.stderr, flush=True)
    Console(width=150).print(table)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
