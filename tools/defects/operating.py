"""Starting, settings, engines, growth and upgrades."""

from tools.defects.mutant import undo

ENGINES = "src/holdfast/engines"
FIRST_START = "tests/journeys/test_first_start.py"
SETTINGS = "tests/rules/test_check_settings.py"
SETUPS = "tests/stores/test_engine_setups.py"
GROWTH = "tests/stores/test_growth.py"
RETENTION = "tests/stores/test_retention.py"
DOCTOR = "tests/stores/test_doctor.py"
ROTATION = "tests/journeys/test_secret_rotation.py"
STANDBY = "tests/stores/test_standby.py"
UPGRADES = "tests/stores/test_rolling_upgrades.py"

STARTING = (
    undo(
        "a forgotten gateway sells tickets for test cards",
        f"{FIRST_START} {SETTINGS} -k 'must_be_named or default_gateway'",
        (
            "src/holdfast/config.py",
            '            values.setdefault("gateway", "")\n',
            '            values.setdefault("gateway", "sandbox")\n',
        ),
    ),
    undo(
        "the doctor finds nothing wrong with a sandbox on a real database",
        f"{SETTINGS} -k chosen_complete_and_real",
        (
            "src/holdfast/runtime/check_settings.py",
            'Finding(what, Severity.FAIL, detail, "set HOLDFAST_GATEWAY to stripe, razorpay or none")',
            "Finding(what, Severity.OK, detail)",
        ),
    ),
    undo(
        "a worker that has lost its turn reports its last gauges",
        "tests/stores/test_turns.py",
        (f"{ENGINES}/turns.py", "                metrics.withdraw(measured)\n", ""),
    ),
    undo(
        "the sandbox beside a server listens on every address",
        f"{FIRST_START} -k this_machine_only",
        (
            "src/holdfast/runtime/sandbox_beside.py",
            'SANDBOX_HOST = "127.0.0.1"\n',
            'SANDBOX_HOST = "0.0.0.0"\n',
        ),
    ),
    undo(
        "the demo is added to a real box office",
        f"{FIRST_START} -k refuses_a_database",
        (
            "src/holdfast/runtime/workers.py",
            "            await refuse_other_data(connection)\n",
            "            pass\n",
        ),
    ),
    undo(
        "a Redis Cluster is used until it breaks",
        f"{SETUPS} -k cluster_is_refused",
        (
            f"{ENGINES}/startup_checks.py",
            '    if int(found.get("cluster_enabled", 0)) and kind != "cluster":\n',
            "    if False:\n",
        ),
    ),
    undo(
        "a Sentinel is taken for a Redis server",
        f"{SETUPS} -k sentinel",
        (
            f"{ENGINES}/startup_checks.py",
            "    if _is_sentinel(found):\n        return (\n",
            "    if False:\n        return (\n",
        ),
    ),
    undo(
        "PgBouncer in transaction mode is not noticed",
        f"{SETUPS} -k transaction_mode",
        (
            f"{ENGINES}/startup_checks.py",
            "    if await _is_pooled(connection) and await _shares_sessions(connection, database_url):\n",
            "    if False:\n",
        ),
    ),
    undo(
        "PgBouncer in session mode refuses our startup parameters",
        f"{SETUPS} -k session_mode",
        (
            f"{ENGINES}/postgres.py",
            'server_settings={"application_name": "holdfast"},\n',
            'server_settings={"application_name": "holdfast", **self._settings},\n',
        ),
    ),
    undo(
        "wrong settings of the gateway are a traceback of every worker",
        f"{FIRST_START} -k wrong_settings_are_one_sentence",
        (
            "src/holdfast/runtime/check_settings.py",
            "    yield _gateway(config, trial)\n",
            "",
        ),
    ),
    undo(
        "a sale without a mail server starts without a warning",
        f"{FIRST_START} {SETTINGS} -k 'without_mail or mail_addresses'",
        (
            "src/holdfast/runtime/check_settings.py",
            'Finding("mail", Severity.WARN, "no mail server: buyers get no tickets by mail", fix)',
            'Finding("mail", Severity.OK, "none is sent")',
        ),
    ),
    undo(
        "the address of the API documentation in the welcome is a 404",
        "tests/journeys/test_cli.py -k address_in_the_welcome",
        ("src/holdfast/cli/output.py", 'f"{opened.url}/docs"', 'f"{opened.url}/api/v1/docs"'),
    ),
    undo(
        "there is no --version",
        "tests/journeys/test_cli.py -k version_is_printed",
        (
            "src/holdfast/cli/main.py",
            'typer.Option("--version", callback',
            'typer.Option("--release", callback',
        ),
    ),
    undo(
        "a machine that only works has no health and no metrics",
        "tests/journeys/test_health.py -k machine_of_its_own",
        ("src/holdfast/runtime/workers.py", "            serve_probes(app),\n", ""),
    ),
    undo(
        "a restart cannot overlap on one port",
        "tests/journeys/test_cli.py -k engines_they_are_given",
        (
            "src/holdfast/runtime/ports.py",
            "        if not port or not _is_served_from(run, port):\n",
            "        if True:\n",
        ),
    ),
    undo(
        "the embedded PostgreSQL of root may write every file",
        "tests/stores/test_embedded_as_root.py",
        (
            f"{ENGINES}/embedded/privilege.py",
            "        for capability in (None, CAP_DAC_READ_SEARCH):\n",
            "        for capability in (None, 1):\n",
        ),
    ),
)

GROWING = (
    undo(
        "the gauge of oversold seats reads every sale of all time",
        f"{GROWTH} -k 'test_a_job and audit'",
        (
            "src/holdfast/audit/queries.sql",
            "         WHERE closes_at > now() - interval '1 day' AND (closes_at, show_id) > ($1, $2)\n",
            "         WHERE (closes_at, show_id) > ($1, $2)\n",
        ),
    ),
    undo(
        "seats left are counted by reading every booking of a show",
        f"{GROWTH} -k test_a_list",
        (
            "src/holdfast/bookings/queries.sql",
            "WHERE booking.show_id = requested.show_id AND state = 'blocked') AS blocked\n",
            "WHERE booking.show_id = requested.show_id AND state::text = 'blocked') AS blocked\n",
        ),
    ),
    undo(
        "blocks are found by reading every booking of a show",
        f"{GROWTH} -k test_a_list",
        (
            "src/holdfast/bookings/queries.sql",
            "SELECT * FROM booking WHERE show_id = $1 AND state = 'blocked' ORDER BY number;\n",
            "SELECT * FROM booking WHERE show_id = $1 AND state::text = 'blocked' ORDER BY number;\n",
        ),
    ),
    undo(
        "price rules read every booking of a show",
        f"{GROWTH} -k test_a_list",
        (
            "src/holdfast/bookings/organiser.sql",
            "FROM booking WHERE show_id = $1 AND state = 'blocked') AS sold,\n",
            "FROM booking WHERE show_id = $1 AND state::text = 'blocked') AS sold,\n",
        ),
    ),
    undo(
        "the job of cancelled shows reads all of the past",
        f"{GROWTH} -k 'test_a_job and payments'",
        (
            "src/holdfast/bookings/functions.sql",
            "           WHERE sale.cancelled AND sale.emptied_at IS NULL\n        ORDER BY show_id\n"
            "           LIMIT p_max\n",
            "           WHERE sale.cancelled\n        ORDER BY show_id\n",
        ),
    ),
    undo(
        "the gauge of refunds reads all refunds",
        f"{GROWTH} -k 'test_a_job and payments'",
        (
            "src/holdfast/refunds/queries.sql",
            "SELECT (SELECT count(*) FROM refund WHERE state = 'by_hand') AS by_hand,\n",
            "SELECT (SELECT count(*) FROM refund WHERE state::text = 'by_hand') AS by_hand,\n",
        ),
    ),
    undo(
        "the gauge of webhook deliveries reads all deliveries",
        f"{GROWTH} -k 'test_a_job and webhooks'",
        (
            f"{ENGINES}/leases.sql",
            "SELECT (SELECT count(*) FROM {table} WHERE due_at IS NOT NULL) AS queued,\n",
            "SELECT (SELECT count(*) FROM {table} WHERE due_at::text IS NOT NULL) AS queued,\n",
        ),
    ),
    undo(
        "the list of an organiser's refunds sorts all refunds",
        f"{GROWTH} -k test_a_list",
        (
            "src/holdfast/refunds/queries.sql",
            "           WHERE ($1::bigint IS NULL OR organiser_id = $1)\n",
            "           WHERE ($1::bigint IS NULL OR organiser_id::text = $1::text)\n",
        ),
    ),
    undo(
        "every worker measures every gauge",
        f"{GROWTH} -k only_one_of_two",
        (
            f"{ENGINES}/turns.py",
            "            if not mine:\n",
            "            if False:\n",
        ),
    ),
    undo(
        "lapsed bookings are never deleted",
        f"{RETENTION} -k unpaid_bookings",
        (
            "src/holdfast/bookings/retention.py",
            '        RetentionRule("bookings.lapsed", Q.lapsed, config.lapsed_keep_d),\n',
            "",
        ),
    ),
    undo(
        "seat keys of past shows are never deleted",
        f"{RETENTION} -k seat_keys",
        (
            "src/holdfast/bookings/retention.py",
            '        RetentionRule("bookings.past_sales", Q.past_sales, config.past_shows_keep_d),\n',
            "",
        ),
    ),
    undo(
        "guests without a purchase are never deleted",
        f"{RETENTION} -k guests_without",
        (
            "src/holdfast/accounts/retention.py",
            '        RetentionRule("accounts.guests", Q.guests, config.guests_keep_d, find_buyers),\n',
            "",
        ),
    ),
    undo(
        "retention deletes everything in one go",
        f"{RETENTION} -k bounded_number",
        (
            "src/holdfast/background.py",
            "    return Retention(app.postgres, rules, app.config.retention_rows_max)\n",
            "    return Retention(app.postgres, rules, 1_000_000)\n",
        ),
    ),
    undo(
        "a migration step cannot build an index while others write",
        f"{UPGRADES} -k TestLongSteps",
        (
            f"{ENGINES}/migrate.py",
            "        if not OUTSIDE.search(self.sql):\n            return []\n",
            "        return []\n",
        ),
    ),
    undo(
        "the previous release cannot restart after an upgrade",
        f"{UPGRADES} -k compatible_steps",
        (
            f"{ENGINES}/migrate.py",
            '        if not _runs_with(done[number]["works_with"]):\n',
            "        if True:\n",
        ),
    ),
    undo(
        "connections to a demoted server stay in the pool",
        f"{SETUPS} -k demoted",
        (
            f"{ENGINES}/postgres.py",
            "            connection.terminate()\n            await self._replace_connections(pool)\n",
            "",
        ),
    ),
    undo(
        "a commit that waits for a standby is cancelled",
        f"{STANDBY} -k not_acknowledged",
        ("src/holdfast/app.py", "has_standbys=config.ledger_standbys_min > 0", "has_standbys=False"),
    ),
    undo(
        "a standby is read in place of the ledger",
        f"{STANDBY} -k standby_alone",
        (f"{ENGINES}/postgres.py", 'ROLE = "primary"', 'ROLE = "any"'),
    ),
    undo(
        "the first host uses up the time-out of all",
        f"{STANDBY} -k silent",
        (
            f"{ENGINES}/ledger_hosts.py",
            "        self._urls = split_hosts(url)\n",
            "        self._urls = [url]\n",
        ),
    ),
    undo(
        "a replica is read however far it is behind",
        f"{STANDBY} -k while_it_lags",
        (f"{ENGINES}/replica.py", "<= self._lag_max_s", '<= float("inf")'),
    ),
    undo(
        "an organiser does not see a change because the replica lags",
        f"{STANDBY} -k just_changed",
        ("src/holdfast/catalogue/store.py", "        self.on_change()\n", ""),
    ),
)

WATCHING = (
    undo(
        "a worker that was killed beside a web process is not missed",
        "tests/storms/test_game_day.py",
        (
            f"{ENGINES}/worker_beat.py",
            'metrics.measure("worker_missing", 0 if found.is_alive else 1)',
            'metrics.measure("worker_missing", 0)',
        ),
    ),
    undo(
        "the servers for rate limits and facts are not looked at",
        f"{DOCTOR} -k rate_limits_and_the_bus",
        ("src/holdfast/cli/doctor.py", '        Check("rate limits", partial(check_limits, found)),\n', ""),
    ),
    undo(
        "a dependency that hangs hangs the doctor",
        f"{DOCTOR} -k what_hangs",
        (
            "src/holdfast/runtime/check_certificates.py",
            "        async with asyncio.timeout(ANSWER_WITHIN_S):\n",
            "        async with asyncio.timeout(None):\n",
        ),
        ("src/holdfast/runtime/bounded.py", "asyncio.timeout(self.within_s)", "asyncio.timeout(None)"),
    ),
    undo(
        "a changed secret is read at the next restart",
        f"{ROTATION} -k every_secret",
        (
            "src/holdfast/runtime/launch.py",
            "        await watch.changed()\n",
            "        await asyncio.Event().wait()\n",
        ),
    ),
)

SIDE_BY_SIDE = (
    undo(
        "a step gives up at the first locked table",
        f"{UPGRADES} -k tries_again",
        (
            f"{ENGINES}/migrate.py",
            "            if time.monotonic() + LOCK_PAUSE_S > give_up_at:\n                raise\n",
            "            raise\n",
        ),
    ),
    undo(
        "a plan that a newer release outdated is an error of the program",
        f"{UPGRADES} -k outdated_plan",
        (
            f"{ENGINES}/postgres.py",
            "        except REPLACED as error:\n",
            "        except ZeroDivisionError as error:\n",
        ),
    ),
    undo(
        "holds fail between a new column of booking and the new functions",
        "tests/tidy/test_migration_locks.py -k gets_a_column",
        (
            "src/holdfast/bookings/functions_opening.sql",
            """) RETURNS TABLE (
    show_id bigint, number bigint, owner_id bigint, fence bigint, state booking_state, request_id text,
    body_hash bigint, claim_id text, seats int[], prices_minor bigint[], amount_minor bigint, currency text,
    note text, counts boolean, opened_at timestamptz, expires_at timestamptz, confirmed_at timestamptz,
    revision bigint
) LANGUAGE sql STABLE AS""",
            ") RETURNS SETOF booking LANGUAGE sql STABLE AS",
        ),
    ),
)

MUTANTS = (*STARTING, *GROWING, *WATCHING, *SIDE_BY_SIDE)
