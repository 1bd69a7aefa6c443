"""The sandbox's database: SQLite, one file. Only this module accesses it.

    caller ─┐
    caller ─┼─► batch ─► the writer's thread: BEGIN, each in turn, COMMIT ─► every caller's result
    caller ─┘

A caller passes its change as a function of a `DatabaseWriter` and gets the result after the commit has
reached the disk: a killed sandbox has forgotten nothing that it answered. The functions of a batch run one
after the other, so a condition that one of them has checked is still true when it writes. A function checks
before it writes: one that refuses has written nothing.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from msgspec import Struct

from holdfast.engines.batch import Batcher
from holdfast.engines.errors import OperatorError
from holdfast.engines.named_queries import Queries
from holdfast.sandbox.payment import (
    SandboxDispute,
    SandboxPayment,
    SandboxRefund,
    SandboxRefusal,
    SandboxWebhook,
)
from holdfast.sandbox.webhook import webhook_body

Q = Queries("holdfast.sandbox")
SCHEMA = (resources.files("holdfast.sandbox") / "schema.sql").read_text()

BATCH_MAX = 256
WAITING_MAX = 20_000
CACHE_KB = 8_000  # of SQLite's pages, for each of the two connections
LOCKED_WAIT_S = 5.0
FORGET_AT_ONCE_MAX = 2000

Result = TypeVar("Result")


class StoredAnswer(Struct, frozen=True, gc=False):
    """What is known of an idempotency key."""

    print: bytes
    made: str | None
    status: int | None  # None: begun, and not answered
    body: bytes | None


class DatabaseWriter:
    """The database inside a transaction. Lives in the writer's thread."""

    def __init__(self, connection: sqlite3.Connection, account: str, sends: bool) -> None:
        self._run = connection.execute
        self._run_many = connection.executemany
        self._account = account
        self._sends = sends
        self.now = 0.0
        self.new_webhooks: list[SandboxWebhook] = []

    def begin(self) -> None:
        self.now = max(self.now, time.time())  # never back: who pages through payments would miss some
        self.new_webhooks = []
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._run("COMMIT")

    def roll_back(self) -> None:
        self._run("ROLLBACK")

    def add_payment(self, payment: SandboxPayment) -> SandboxPayment:
        """As given, but for its number."""
        p = payment
        order = (p.id, p.reference, p.amount_minor, p.currency)
        moved = (p.state, p.method, p.card, p.code, p.reason)
        place = (p.description, p.return_url, p.page)
        more = (p.is_firm, p.webhooks, p.due_at, p.created_at, p.metadata)
        self._run(Q.add_payment, (*order, *moved, *place, *more))
        return payment

    def move(self, before: SandboxPayment, moved: SandboxPayment) -> None:
        m = moved
        values = (m.state, m.method, m.card, m.code, m.reason, m.is_firm, m.webhooks, m.due_at)
        changed = self._run(Q.move_payment, (*values, m.id, before.state)).rowcount
        assert changed == 1, "it was read in this transaction"

    def payment(self, payment_id: str) -> SandboxPayment:
        row = self._run(Q.payment_by_id, (payment_id,)).fetchone()
        if row is None:
            raise SandboxRefusal(404, "resource_missing", "There is no such payment.")
        return SandboxPayment(*row)

    def payment_by_page(self, page: str) -> SandboxPayment:
        row = self._run(Q.payment_by_page, (page,)).fetchone()
        if row is None:
            raise SandboxRefusal(404, "resource_missing", "There is no such payment.")
        return SandboxPayment(*row)

    def refund(self, refund_id: str) -> SandboxRefund:
        row = self._run(Q.refund_by_id, (refund_id,)).fetchone()
        if row is None:
            raise SandboxRefusal(404, "resource_missing", "There is no such refund.")
        return SandboxRefund(*row)

    def fail_refund(self, failed: SandboxRefund) -> None:
        self._run(Q.fail_refund, (failed.reason, failed.id))
        self._run(Q.count_refund, (-failed.amount_minor, failed.payment_id))

    def put_dispute(self, dispute: SandboxDispute) -> SandboxDispute:
        """A payment's dispute; one that exists gets the new state."""
        d = dispute
        self._run(Q.put_dispute, (d.id, d.payment_id, d.amount_minor, d.state, d.reason, d.created_at))
        return SandboxDispute(*self._run(Q.dispute_by_payment, (d.payment_id,)).fetchone())

    def payments_due(self, limit: int) -> list[SandboxPayment]:
        return [SandboxPayment(*row) for row in self._run(Q.payments_due, (self.now, limit))]

    def add_refund(self, refund: SandboxRefund) -> None:
        values = (refund.id, refund.payment_id, refund.amount_minor, refund.state, refund.reason)
        self._run(Q.add_refund, (*values, refund.created_at))
        if refund.state == "succeeded":
            changed = self._run(Q.count_refund, (refund.amount_minor, refund.payment_id)).rowcount
            assert changed == 1, "it was captured when it was read"

    def add_webhook(
        self,
        kind: str,
        payment_id: str,
        about: dict[str, Any],
        *,
        after_s: float | None = 0.0,
        copies: int = 1,
    ) -> SandboxWebhook:
        """A webhook, to be sent `after_s`; None: it is only written down."""
        webhook_id = new_id("evt")
        body = webhook_body(webhook_id, kind, self._account, self.now, about)
        due_at = None if after_s is None or not self._sends else self.now + after_s
        values = (webhook_id, kind, payment_id, body, self.now, due_at, copies)
        seq = self._run(Q.add_webhook, values).lastrowid
        assert seq is not None
        webhook = SandboxWebhook(seq, *values, 0, None)
        if due_at is not None:
            self.new_webhooks.append(webhook)
        return webhook

    def delivered(self, seqs: Sequence[int]) -> None:
        self._run_many(Q.webhook_delivered, [(self.now, seq) for seq in seqs])

    def postpone(self, seq: int, due_at: float | None, copies: int, attempts: int) -> None:
        self._run(Q.webhook_failed, (due_at, copies, attempts, seq))

    def find_answer(self, key: str) -> StoredAnswer | None:
        row = self._run(Q.answer_by_key, (key,)).fetchone()
        return None if row is None else StoredAnswer(*row)

    def store_answer(self, key: str, mark: bytes, made: str | None, answer: tuple[int, bytes] | None) -> None:
        """The answer to a key; None: it will come."""
        if answer is None:
            self._run(Q.begin_answer, (key, mark, made, self.now))
        else:
            self._run(Q.add_answer, (key, mark, made, *answer, self.now))

    def complete_answer(self, key: str, answer: tuple[int, bytes]) -> None:
        self._run(Q.end_answer, (*answer, key))

    def forget_answers(self, older_than_s: float) -> int:
        return self._run(Q.forget_answers, (self.now - older_than_s, FORGET_AT_ONCE_MAX)).rowcount

    def write_note(self, name: str, text: str) -> None:
        self._run(Q.write_note, (name, text))


class SandboxDatabase:
    """`write` changes something; all other methods read committed rows."""

    def __init__(self, folder: Path, *, account: str, sends: bool) -> None:
        self._file = folder / "sandbox.db"
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._batcher: Batcher[Callable[[DatabaseWriter], Any], Any] = Batcher(
            self._write_many, batch_max=BATCH_MAX, waiting_max=WAITING_MAX
        )
        self.on_new_webhooks: Callable[[Sequence[SandboxWebhook]], None] = lambda _webhooks: None
        self.writes = self.commits = 0
        self._written = self._connect()
        try:
            self._written.executescript(SCHEMA)
        except sqlite3.Error as error:
            raise OperatorError(f"cannot use {self._file}: {error}") from None
        os.chmod(self._file, 0o600)
        self._read = self._connect().execute
        self._writer = DatabaseWriter(self._written, account, sends)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._file, isolation_level=None, check_same_thread=False, timeout=LOCKED_WAIT_S
        )
        for setting in (
            "journal_mode = WAL",
            "synchronous = FULL",  # a commit is on the disk before its caller gets the result
            f"cache_size = -{CACHE_KB}",
            "foreign_keys = OFF",  # the core looks the payment up anyway
        ):
            connection.execute(f"PRAGMA {setting}").fetchall()
        return connection

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._written.close)
        self._thread.shutdown()

    async def write(self, change: Callable[[DatabaseWriter], Result]) -> Result:
        """What `change` returned, once it is on the disk. It may raise Refused, having written nothing."""
        result: Result = await self._batcher(change)
        return result

    async def _write_many(self, changes: Sequence[Callable[[DatabaseWriter], Any]]) -> list[Any]:
        loop = asyncio.get_running_loop()
        results, webhooks = await loop.run_in_executor(self._thread, self._transaction, changes)
        self.writes += len(changes)
        self.commits += 1
        if webhooks:
            self.on_new_webhooks(webhooks)
        return results

    def _transaction(
        self, changes: Sequence[Callable[[DatabaseWriter], Any]]
    ) -> tuple[list[Any], list[SandboxWebhook]]:
        writer = self._writer
        results: list[Any] = []
        writer.begin()
        try:
            for change in changes:
                try:
                    results.append(change(writer))
                except SandboxRefusal as refused:
                    results.append(refused)
            writer.commit()
        except BaseException:
            writer.roll_back()
            raise
        return results, writer.new_webhooks

    # ── what was committed ────────────────────────────────────────────────────────────

    def payment(self, payment_id: str) -> SandboxPayment | None:
        row = self._read(Q.payment_by_id, (payment_id,)).fetchone()
        return None if row is None else SandboxPayment(*row)

    def payment_by_page(self, page: str) -> SandboxPayment | None:
        row = self._read(Q.payment_by_page, (page,)).fetchone()
        return None if row is None else SandboxPayment(*row)

    def payments_by_reference(self, reference: str) -> list[SandboxPayment]:
        return [SandboxPayment(*row) for row in self._read(Q.payments_by_reference, (reference,))]

    def payments_since(self, since: float, after: SandboxPayment | None, limit: int) -> list[SandboxPayment]:
        place = (after.created_at, after.seq) if after else (since, -1)
        return [SandboxPayment(*row) for row in self._read(Q.payments_since, (since, *place, limit))]

    def refund(self, refund_id: str) -> SandboxRefund | None:
        row = self._read(Q.refund_by_id, (refund_id,)).fetchone()
        return None if row is None else SandboxRefund(*row)

    def dispute(self, payment_id: str) -> SandboxDispute | None:
        row = self._read(Q.dispute_by_payment, (payment_id,)).fetchone()
        return None if row is None else SandboxDispute(*row)

    def refunds(self, payment_id: str) -> list[SandboxRefund]:
        return [SandboxRefund(*row) for row in self._read(Q.refunds_by_payment, (payment_id,))]

    def is_answered(self, key: str) -> bool:
        return self._read(Q.answer_by_key, (key,)).fetchone() is not None

    def webhooks_after(self, seq: int, limit: int) -> list[SandboxWebhook]:
        return [SandboxWebhook(*row) for row in self._read(Q.webhooks_after, (seq, limit))]

    def webhooks_due(self, now: float, limit: int) -> list[SandboxWebhook]:
        return [SandboxWebhook(*row) for row in self._read(Q.webhooks_due, (now, limit))]

    def next_webhook_due(self, now: float) -> float | None:
        found: float | None = self._read(Q.next_webhook_due, (now,)).fetchone()[0]
        return found

    def next_payment_due(self) -> float | None:
        found: float | None = self._read(Q.next_payment_due).fetchone()[0]
        return found

    def webhooks_waiting(self) -> int:
        return int(self._read(Q.webhooks_waiting).fetchone()[0])

    def totals(self) -> list[tuple[str, str, int, int, int]]:
        return list(self._read(Q.totals))

    def note(self, name: str) -> str | None:
        row = self._read(Q.read_note, (name,)).fetchone()
        return None if row is None else row[0]


def copy_as_of(database: Path, instant: float) -> bytes:
    """Whole, though a sandbox writes to it, and without payments that were begun after this instant.

    For a backup of a ledger at that instant, which knows all earlier ones: a copy made before it would lack
    money that the ledger has, and one made after it would have money that the ledger does not know.
    """
    with TemporaryDirectory(prefix="holdfast-backup-") as place:
        file = Path(place) / "copy.db"
        there, here = sqlite3.connect(database), sqlite3.connect(file)
        try:
            there.backup(here)
            for forget in (
                Q.forget_answers_since,
                Q.forget_webhooks_since,
                Q.forget_refunds_since,
                Q.forget_payments_since,
            ):
                here.execute(forget, (instant,))
            here.commit()
        finally:
            there.close()
            here.close()
        return file.read_bytes()


def new_id(prefix: str) -> str:
    return f"{prefix}_{os.urandom(12).hex()}"
