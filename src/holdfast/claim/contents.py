"""From what a durable store has to the blueprint of a map. No I/O."""

from collections import Counter
from collections.abc import Sequence

from holdfast.claim.claim import BLOCKED, CLAIMED, COMMITTED, FREE, Blueprint, Claim, Contents

NO_END_MS = 100 * 365 * 24 * 3600 * 1000  # a pool that does not close


def plan_map(size: int, contents: Contents, *, opens_in_ms: int, closes_in_ms: int) -> Blueprint:
    """ValueError: the contents name a unit twice, or one that the pool does not have."""
    states = bytearray([FREE]) * size
    live = [(claim, round(left_s * 1000)) for claim, left_s in contents.live if left_s > 0]
    for claim in contents.committed:
        _put(states, claim.units, COMMITTED)
    for claim, _ in live:
        _put(states, claim.units, CLAIMED)
    _put(states, contents.blocked, BLOCKED)
    every = [*contents.committed, *(claim for claim, _ in live)]
    return Blueprint(
        epoch=0,  # rebuild.lua sets it
        units=bytes(states),
        opens_in_ms=opens_in_ms,
        closes_in_ms=closes_in_ms,
        claims=[(str(claim), left_ms) for claim, left_ms in live],
        owners=_entries(every, [claim for claim, _ in live]),
        fields={"forgets_lapses": b"1"},  # no method of a pool uses them, and a pool may never close
    )


def _put(states: bytearray, units: Sequence[int], code: int) -> None:
    for unit in units:
        if not 0 <= unit < len(states):
            raise ValueError(f"the pool has no unit {unit}: its size is {len(states)}")
        if states[unit] != FREE:
            raise ValueError(f"the durable store has unit {unit} twice")
        states[unit] = code


def _entries(every: Sequence[Claim], live: Sequence[Claim]) -> dict[str, int | str]:
    """Fields of `owners`: see parties.lua."""
    counts: Counter[str] = Counter()
    for claim in every:
        counts[str(claim.owner)] += len(claim.units)
    for claim in live:
        if claim.party:
            counts[f"@{claim.party}"] += len(claim.units)
            counts[f"!{claim.owner}"] += 1
    # By id, so that a request from before the rebuild that is sent again finds its claim.
    return {**counts, **{"#" + claim.claim_id.partition("@")[0]: str(claim) for claim in every}}
