"""Openings as the arguments of open_holds."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from holdfast.bookings.booking import Opening


def remaining_ms(openings: Sequence[Opening], now_s: float) -> list[int]:
    """Each row lives as long as its claim has left, not longer: the claim was made earlier."""
    return [max(1, o.ttl_ms - int((now_s - o.claimed_at_s) * 1000)) for o in openings]


def encode_openings(
    openings: Sequence[Opening],
    left_ms: Sequence[int],
    lock_wait_ms: int = 0,
    *,
    limits: str | None = None,
    trace: str = "",
) -> list[object]:
    """Arguments of open_holds: array literals as PostgreSQL writes them, cheaper than encoding lists."""
    return [
        _int_array([o.show_id for o in openings]),
        _int_array([o.owner_id for o in openings]),
        _text_array([o.request_id for o in openings]),
        _int_array([o.body_hash for o in openings]),
        _text_array([o.claim_id for o in openings]),
        _text_array([o.note for o in openings]),
        _int_array(left_ms),
        _int_array([o.revision for o in openings]),
        _text_array([o.currency for o in openings]),
        _int_arrays([o.seats for o in openings]),
        _int_arrays([o.prices for o in openings]),
        _int_array([sum(o.prices) for o in openings]),
        f"{{{','.join(['t' if o.confirms_free else 'f' for o in openings])}}}",
        openings[0].ledger_only,
        str(lock_wait_ms),
        f"{{{','.join(['t' if o.is_guest else 'f' for o in openings])}}}",
        limits,
        trace,
    ]


def _int_array(values: Iterable[int]) -> str:
    return f"{{{','.join(map(str, values))}}}"


def _int_arrays(rows: Sequence[tuple[int, ...]]) -> str:
    """An array of array literals, one per row."""
    return _text_array([_array_format(len(row)) % row for row in rows])


@lru_cache(maxsize=64)
def _array_format(length: int) -> str:
    return f"{{{','.join(['%d'] * length)}}}"


def _text_array(values: Sequence[str]) -> str:
    """Every element in quotes; a backslash and a quote are escaped, so no text ends its element early."""
    joined = '","'.join(values)
    if "\\" in joined or joined.count('"') != 2 * (len(values) - 1):
        joined = '","'.join([value.replace("\\", "\\\\").replace('"', '\\"') for value in values])
    return f'{{"{joined}"}}'
