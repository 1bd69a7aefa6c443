"""Proof of work for guests while very many of them want the same show; off as long as none is that hot.

    guest's hold ─► hot? ── no ──► as ever
                      └── yes ─► proof? ── none ──► ProofNeeded with a puzzle
                                   ├── puzzle.number   solved: a second of a browser's time
                                   └── puzzle          old enough: a browser without scripts has waited

    puzzle   time-nonce-mac, the mac by a key that all processes share in Redis
    number   SHA-256 of "puzzle.number" begins with `bits` zero bits: 2^bits hashes to find, one to check

A puzzle is for one show and one address range, and is used once. A bot can solve puzzles, too: each hold then
costs it time, and the limits on holds count as ever.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable

from holdfast.config import Config
from holdfast.engines.errors import EngineDown
from holdfast.engines.metrics import metrics
from holdfast.engines.redis import Redis
from holdfast.errors import TooManyRequests

KEY = "puzzle:{limits}:key"
KEY_LIFE_S = 86_400
KEY_READ_EVERY_S = 60
PUZZLE_LIFE_S = 120
HOT_FOR_S = 10  # after the last busy second
SHOWS_MAX = 1000
MAC_LENGTH = 32
# Hexadecimal in letters alone: a form with many digits in a row is refused as a card number.
LETTERS = str.maketrans("0123456789abcdef", "ghijklmnopqrstuv")
DIGITS = str.maketrans("ghijklmnopqrstuv", "0123456789abcdef")


class ProofNeeded(TooManyRequests):
    """Very many people want seats of this show right now. Nothing was held.

    Send the same request again with `proof`: the `puzzle`, a dot and a number for which the SHA-256 of that
    text begins with `bits` zero bits. Or wait for the seconds in Retry-After and send the puzzle alone.
    Clients with an account need neither.
    """

    code, status, title = "proof_needed", 429, "Many people want these seats"


class Demand:
    """Which shows are hot: how many guests tried to hold seats in a second, counted by this process."""

    def __init__(self, hot_per_second: int, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._hot_per_second = hot_per_second
        self._monotonic = monotonic
        self._seconds: dict[int, tuple[int, int]] = {}  # show → second, tries in it
        self._hot_until: dict[int, float] = {}

    def note(self, show_id: int) -> bool:
        """Counts a try; whether the show is hot."""
        if not self._hot_per_second:
            return False
        now = self._monotonic()
        second, tries = self._seconds.get(show_id, (0, 0))
        tries = tries + 1 if second == int(now) else 1
        if len(self._seconds) >= SHOWS_MAX:
            self._seconds.clear()
            self._hot_until = {show: until for show, until in self._hot_until.items() if until > now}
        self._seconds[show_id] = (int(now), tries)
        if tries >= self._hot_per_second:
            self._hot_until[show_id] = now + HOT_FOR_S
        return self._hot_until.get(show_id, 0.0) > now


class Puzzles:
    def __init__(
        self, redis: Redis, config: Config, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._redis = redis
        self._monotonic = monotonic
        self._bits = config.puzzle_bits
        self._wait_s = config.puzzle_wait_s
        self.demand = Demand(config.puzzle_from_holds_per_second, monotonic=monotonic)
        self._key = b""
        self._key_read_at = -1e9

    async def require_proof(self, show_id: int, party: str, proof: str) -> None:
        """Nothing while the show is not hot; else ProofNeeded unless the proof is good."""
        if not self.demand.note(show_id):
            return
        subject = f"{show_id} {party}"
        try:
            key, now_s = await self._load_key(), int((await self._redis.call("TIME"))[0])
            found = check_proof(key, subject, proof, now_s=now_s, bits=self._bits, wait_s=self._wait_s)
            if found and await self._use(proof):
                metrics.add("puzzles_total", outcome=found)
                return
        except EngineDown:  # PostgreSQL decides alone and takes a few at a time: no puzzle is needed
            return
        metrics.add("puzzles_total", outcome="set")
        raise ProofNeeded(
            puzzle=new_puzzle(key, subject, now_s),
            bits=self._bits,
            policy="proof",
            limit=1,
            window_s=PUZZLE_LIFE_S,
            retry_after_s=self._wait_s,
        )

    async def _use(self, proof: str) -> bool:
        name = f"puzzle:{{limits}}:used:{proof.partition('.')[0]}"
        return await self._redis.call("SET", name, 1, "NX", "EX", PUZZLE_LIFE_S) is not None

    async def _load_key(self) -> bytes:
        """The same for all processes; a Redis that lost it gets another, and open puzzles are set again."""
        if self._monotonic() - self._key_read_at > KEY_READ_EVERY_S:
            await self._redis.call("SET", KEY, secrets.token_hex(32), "NX", "EX", KEY_LIFE_S)
            self._key = await self._redis.call("GET", KEY) or b""
            self._key_read_at = self._monotonic()
        return self._key


def new_puzzle(key: bytes, subject: str, now_s: int) -> str:
    start = f"{now_s:x}-{secrets.token_hex(8)}".translate(LETTERS)
    return f"{start}-{_mac(key, subject, start)}"


def check_proof(key: bytes, subject: str, proof: str, *, now_s: int, bits: int, wait_s: int) -> str:
    """`solved`, `waited`, or empty: not a proof for this."""
    puzzle, _, number = proof.partition(".")
    start, _, mac = puzzle.rpartition("-")
    issued = start.partition("-")[0]
    if not key or not hmac.compare_digest(_mac(key, subject, start).encode(), mac.encode()):
        return ""
    age_s = now_s - int(issued.translate(DIGITS), 16)
    if not 0 <= age_s <= PUZZLE_LIFE_S:
        return ""
    if number:
        found = int.from_bytes(hashlib.sha256(proof.encode()).digest(), "big")
        return "solved" if found >> (256 - bits) == 0 else ""
    return "waited" if age_s >= wait_s else ""


def _mac(key: bytes, subject: str, start: str) -> str:
    return hmac.new(key, f"{subject} {start}".encode(), "sha256").hexdigest()[:MAC_LENGTH].translate(LETTERS)
