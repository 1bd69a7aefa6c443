"""The strategies by name. Each is a module of its own, loaded when it is used."""

from importlib import import_module

from lab.strategies.strategy import Strategy

# In the order of the tables: what a shop tries first comes first.
MODULES = {
    "naive": "naive.Naive",
    "for_update": "row_lock.RowLock",
    "nowait": "row_lock.RowLockNoWait",
    "skip_locked": "row_lock.RowLockSkipLocked",
    "optimistic": "optimistic.Optimistic",
    "serializable": "serializable.Serializable",
    "unique_key": "unique_key.UniqueKey",
    "advisory_lock": "advisory_lock.AdvisoryLock",
    "redis_lock": "redis_lock.RedisLock",
    "redis_fence": "redis_lock.RedisLockWithFence",
    "redlock": "redlock.Redlock",
    "seat_keys": "seat_keys.SeatKeys",
    "seat_keys_unique": "seat_keys.SeatKeysWithUniqueKey",
    "holdfast": "holdfast_sale.HoldfastSale",
}
NAMES = tuple(MODULES)


def find_strategy(name: str) -> type[Strategy]:
    module, _, kind = MODULES[name].partition(".")
    found: type[Strategy] = getattr(import_module(f"lab.strategies.{module}"), kind)
    assert found.name == name
    return found
