"""What the doctor says about each fact: ok, a warning or a fault, and the next step."""

from datetime import UTC, datetime

import pytest

from holdfast.audit import DeadLetters
from holdfast.config import Config
from holdfast.engines.certificates import (
    TlsServer,
    find_ledger_servers,
    find_public_server,
    find_redis_servers,
)
from holdfast.engines.redis_memory import RedisMemory, combine, parse_memory
from holdfast.engines.worker_beat import WorkerFacts
from holdfast.runtime.check_certificates import judge_days
from holdfast.runtime.check_clocks import judge_clocks
from holdfast.runtime.check_ledger import (
    judge_backup,
    judge_connections,
    judge_dead_letters,
    judge_workers,
)
from holdfast.runtime.check_machine import judge_room
from holdfast.runtime.check_redis import judge_memory
from holdfast.runtime.check_services import judge_gateway
from holdfast.runtime.check_settings import Finding, Severity, check_limits_are_on, give_verdict

GB = 1_000_000_000
NOW = datetime(2026, 11, 18, 20, 0, tzinfo=UTC)
ALIVE, GONE = WorkerFacts(True, NOW, ()), WorkerFacts(False, NOW, ())
PUBLIC = TlsServer("public", "tickets.example", 443)


@pytest.mark.parametrize(
    ("found", "health", "words"),
    [
        (judge_room("disk", 50 * GB, 2000), "ok", ""),
        (judge_room("disk", 1 * GB, 2000), "warn", "delete old logs and backups"),
        (judge_room("disk", GB // 10, 2000), "fail", "HOLDFAST_DISK_FREE_MIN_MB"),
        (judge_room("disk", GB // 10, 0), "ok", ""),
        (judge_connections(most=97, others=5, per_process=8, processes=5), "ok", ""),
        (judge_connections(most=57, others=5, per_process=8, processes=6), "warn", "to 73 or more"),
        (judge_workers(ALIVE, trial=False), "ok", ""),
        (judge_workers(WorkerFacts(True, NOW, ("RefundJobs.count",)), trial=False), "warn", "--only"),
        (judge_workers(GONE, trial=True), "fail", "start `holdfast work`"),
        (judge_workers(WorkerFacts(False, None, ()), trial=False), "fail", "start `holdfast work`"),
        (judge_workers(WorkerFacts(False, None, ()), trial=True), "ok", ""),
        (judge_backup(3600, 26, trial=False), "ok", ""),
        (judge_backup(30 * 3600, 26, trial=False), "fail", "holdfast backup create"),
        (judge_backup(None, 26, trial=False), "fail", "holdfast backup record"),
        (judge_backup(None, 26, trial=True), "ok", ""),
        (judge_backup(None, 0, trial=False), "ok", ""),
        (judge_days(PUBLIC, 60.0), "ok", ""),
        (judge_days(PUBLIC, 10.0), "warn", "renew it"),
        (judge_days(PUBLIC, 1.9), "fail", "renew it"),
        (judge_days(PUBLIC, -1.0), "fail", "renew it"),
        (judge_gateway(0.1, Config()), "ok", ""),
        (judge_gateway(3.0, Config()), "warn", "status page"),
        (judge_gateway(None, Config()), "fail", "do not open a sale"),
        (judge_clocks(0.1), "ok", ""),
        (judge_clocks(-5.0), "warn", "one time server"),
        (judge_memory(RedisMemory(used_bytes=1, limit_bytes=10)), "ok", ""),
        (judge_memory(RedisMemory(used_bytes=85, limit_bytes=100)), "warn", "raise its maxmemory"),
        (judge_memory(RedisMemory(used_bytes=96, limit_bytes=100)), "fail", "raise its maxmemory"),
    ],
)
def test_each_line_has_its_severity_and_its_next_step(found: Finding, health: str, words: str) -> None:
    assert found.health == health, found
    assert words in found.fix


def test_the_last_line_says_whether_it_is_fit() -> None:
    ok, warn, fail = (Finding("a", health, "b") for health in Severity)

    assert give_verdict([ok, ok], trial=False) == "fit for an on-sale"
    assert give_verdict([ok, warn], trial=False).endswith("if you accept the warnings: 1 line is marked warn")
    assert give_verdict([warn, fail, fail], trial=True) == "not fit for an on-sale: 2 lines are marked fail"
    assert give_verdict([ok], trial=True).startswith("fit for trying things")


def test_limits_that_are_switched_off_are_named() -> None:
    on = check_limits_are_on(Config())
    off = check_limits_are_on(Config(guest_holds_max=0, requests_per_second_max=0))

    assert (on.health, off.health) == ("ok", "warn")
    assert off.detail == "switched off: HOLDFAST_GUEST_HOLDS_MAX", "the other one is off by default"


def test_dead_letters_have_a_command_for_each_kind() -> None:
    fixes = [found.fix for found in judge_dead_letters(DeadLetters(facts=1, webhooks=2, notices=3))]

    commands = ("holdfast facts retry", "holdfast webhooks replay --all-dead", "notices replay --all-dead")
    assert all(command in fix for command, fix in zip(commands, fixes, strict=True))
    assert [found.health for found in judge_dead_letters(DeadLetters(0, 0, 0))] == ["ok"]


def test_the_memory_of_several_servers_is_that_of_the_fullest() -> None:
    small = parse_memory({"used_memory": 90, "maxmemory": 100, "maxmemory_policy": "noeviction"})
    large = parse_memory(
        {
            "used_memory": 500,
            "maxmemory": 0,
            "total_system_memory": 1000,
            "maxmemory_policy": "allkeys-lru",
            "evicted_keys": 7,
        }
    )

    both = combine([small, large])

    assert (both.share, both.evicts, both.evicted, both.has_limit) == (0.9, 1, 7, True)
    assert "7 keys were evicted" in str(both)


def test_servers_that_may_speak_tls_are_found_in_the_addresses() -> None:
    ledger = find_ledger_servers("ledger", "postgresql://a:b@db1:5433,db2/holdfast?sslmode=require")
    sentinels = find_redis_servers("holds", "rediss+sentinel://u:p@one:1,two/service/0")

    assert [str(one) for one in ledger] == ["db1:5433", "db2:5432"]
    assert [str(one) for one in sentinels] == ["one:1", "two:26379"]
    assert [str(one) for one in find_redis_servers("holds", "rediss://:p@cache")] == ["cache:6379"]
    assert [str(one) for one in find_public_server("https://tickets.example/shop")] == ["tickets.example:443"]
    assert find_redis_servers("holds", "redis://cache") == find_public_server("http://a.example") == []
    assert find_ledger_servers("ledger", "postgresql:///holdfast?host=/run/pg") == []
