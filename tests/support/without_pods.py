"""Tests that say nothing about a house with pods, and why: a run with `--pods` leaves them out."""

# By reason: files, or tests of a file.
LEFT_OUT: dict[str, tuple[str, ...]] = {
    "it has a house with pods of its own": (
        "stores/test_pods.py",
        "stores/test_pods_buyers.py",
        "stores/test_pods_catalogue.py",
        "stores/test_pods_dead_mover.py",
        "stores/test_pods_desk.py",
        "stores/test_pods_door.py",
        "stores/test_pods_layout.py",
        "stores/test_pods_letters.py",
        "stores/test_pods_moved.py",
        "stores/test_pods_operating.py",
        "stores/test_pods_operating_backup.py",
        "stores/test_pods_organisers.py",
        "stores/test_pods_people.py",
        "stores/test_pods_upgrade.py",
        "stores/test_archive.py::TestPods",
        "journeys/test_with_pods.py",
    ),
    "the claim library, without a ledger": (
        "stores/test_claim_library.py",
        "stores/test_claim_library_losses.py",
        "stores/test_claim_wheel.py",
        "stores/test_claims.py",
        "stores/test_dispatch_offers.py",
    ),
    "other people's services alone": (
        "stores/test_gateway_webhooks.py",
        "stores/test_gateways.py",
        "stores/test_localstripe.py",
        "stores/test_razorpay.py",
        "stores/test_sandbox_charges.py",
        "stores/test_sandbox_killed.py",
        "stores/test_sandbox_webhooks.py",
        "stores/test_sandbox_wire.py",
        "stores/test_stripe.py",
        "stores/test_webhooks_out_addresses.py",
        "journeys/test_sandbox_page.py",
    ),
    "engines of its own, which it stops, kills, upgrades or sets up": (
        "stores/test_bus.py",
        "stores/test_embedded.py",
        "stores/test_embedded_as_root.py",
        "stores/test_nats_stream.py",
        "stores/test_outbox.py",
        "stores/test_outbox_commands.py",
        "stores/test_outbox_many.py",
        "stores/test_outbox_on_buses.py",
        "stores/test_outbox_parts.py",
        "stores/test_outbox_trouble.py",
        "stores/test_point_in_time.py",
        "stores/test_redis_cluster.py",
        "stores/test_redis_sentinel.py",
        "stores/test_redis_tls.py",
        "stores/test_seam.py",
        "stores/test_seam_engine_away.py",
        "stores/test_seam_redis_lost.py",
        "stores/test_standby.py",
        "stores/test_stream.py",
        "stores/test_waiting_room_outage.py",
    ),
    "a database of its own: migrations, upgrades, backups, a grown or an empty house": (
        "stores/test_backup.py",
        "stores/test_earlier_statements.py",
        "stores/test_growth.py",
        "stores/test_migrate.py",
        "stores/test_restored_ledger.py",
        "stores/test_retention.py",
        "stores/test_rolling_upgrades.py",
        "stores/test_search.py",
        "stores/test_search_pages.py",
        "stores/test_stale_statistics.py",
        "stores/test_upgrades.py",
        "journeys/test_begin.py",
        "journeys/test_first_house.py",
        "journeys/test_first_start.py",
        "journeys/test_health.py::test_a_worker_on_a_machine_of_its_own",
        "journeys/test_rotated_ticket_key.py",
    ),
    "connections to one engine, without a sale": (
        "stores/test_engine_setups.py",
        "stores/test_leases.py",
        "stores/test_spare_connections.py",
    ),
    "as documented, pages of a list from several databases may be shorter (web/every_pod.py)": (
        "journeys/test_bookings.py::TestTheList::test_is_the_askers_own_newest_first_in_pages",
    ),
    "as documented, a revoked key is refused by a pod within half a minute, and at home at once": (
        "journeys/test_waiting_room.py::TestRefusedHolds::test_of_a_revoked_key",
    ),
    "the demo, which has no pods": (
        "stores/test_catalogue.py::test_starting_the_demo_again",
        "stores/test_catalogue.py::test_the_demo_",
    ),
    "programs beside the product, with engines of their own": (
        "journeys/test_bench.py",
        "journeys/test_cli.py",
        "journeys/test_lab.py",
        "journeys/test_readme.py",
    ),
}

# Whose shows, if there are any, stay at home in a house with pods.
AT_HOME: dict[str, tuple[str, ...]] = {
    "people and requests, which are of the home database": (
        "stores/test_accounts.py",
        "stores/test_audit_log.py",
        "stores/test_idempotency_keys.py",
        "stores/test_logins.py",
        "stores/test_mail_tokens.py",
        "stores/test_organisations.py",
        "stores/test_people.py",
        "stores/test_rate_limits.py",
        "stores/test_signing_keys.py",
    ),
}


def find_reason(file: str, test: str) -> str | None:
    """`test`: its name within the file."""
    for reason, names in LEFT_OUT.items():
        if file in names or any(f"{file}::{test}".startswith(name) for name in names if "::" in name):
            return reason
    return None


def sells_at_home(file: str) -> bool:
    return any(file in files for files in AT_HOME.values())
