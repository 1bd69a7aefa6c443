"""`holdfast tickets rotate`: a new key, and every ticket sold before stays good, unless revoked (R30, T1)."""

import re
from pathlib import Path

from holdfast.app import open_app
from holdfast.config import Config
from tests.support.cli_process import run_holdfast
from tests.support.restorable_ledger import restorable_ledger
from tests.support.shows import a_show


async def test_a_key_is_rotated_by_a_command(tmp_path: Path) -> None:
    """That the tickets of the old one stay good is shown in tests/stores/test_tickets.py."""
    await run_holdfast("migrate", "--data", str(tmp_path))

    first, second = [await run_holdfast("tickets", "rotate", "--data", str(tmp_path)) for _ in range(2)]

    assert (first.code, second.code) == (0, 0), (first, second)
    assert [re.findall(r"key (\d+) signs", one.output) for one in (first, second)] == [["2"], ["3"]]


async def test_keys_of_a_leaked_dump_are_revoked_by_two_commands(config: Config, tmp_path: Path) -> None:
    """What is refused then is shown in tests/stores: test_revoked_ticket_keys.py, test_signing_keys.py."""
    async with restorable_ledger(config, tmp_path) as ledger, open_app(ledger.config) as app:
        env = {
            "HOLDFAST_DATABASE_URL": ledger.config.database_url,
            "HOLDFAST_REDIS_URL": ledger.config.redis_url,
            "HOLDFAST_DATA_DIR": str(tmp_path),
        }
        show, leaked = await a_show(app), app.accounts.signing_key.kid

        tokens = await run_holdfast("keys", "rotate", "--revoke", **env)
        tickets = await run_holdfast("tickets", "rotate", "--revoke", "--show", str(show), **env)
        unclear = await run_holdfast("tickets", "rotate", "--show", str(show), **env)

        await app.accounts.catch_up()
        assert (tokens.code, tickets.code) == (0, 0), (tokens, tickets)
        assert app.accounts.signing_key.kid != leaked
        assert await app.postgres.fetchval("SELECT oldest_ticket_key($1)", show) == 2
        assert (unclear.code, "--revoke" in unclear.words) == (2, True)
