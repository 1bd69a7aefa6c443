"""All settings. docs/operating/settings.md is written from this file, by `make docs`. No I/O.

A setting is read from the environment as HOLDFAST_<NAME>; an unknown name stops the program,
because a misspelt limit that is silently ignored is found on the day of the sale. A secret can be in a file
instead: HOLDFAST_<NAME>_FILE.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any


def setting(default: Any, why: str) -> Any:
    return field(default=default, metadata={"why": why})


def secret(why: str) -> Any:
    """Never in a repr: a logged config must not reveal it. A file can have it: HOLDFAST_<NAME>_FILE."""
    return field(default="", repr=False, metadata={"why": why, "is_secret": True})


@dataclass(frozen=True, kw_only=True)
class Config:
    # engines
    database_url: str = secret("the ledger; empty: an embedded PostgreSQL in data_dir")
    database_direct_url: str = secret(
        "the ledger without its pooler, if database_url is PgBouncer in transaction mode; else empty"
    )
    redis_url: str = secret("where holds are decided; empty: an embedded Valkey in data_dir")
    pods: str = secret(
        "other databases that sell shows: name=postgresql://…,redis://…, separated by spaces; empty: none"
    )
    limits_url: str = secret("Redis for rate limits and puzzles; empty: the Redis of the holds")
    data_dir: str = setting(".holdfast", "where the embedded engines store their data")
    disk_free_min_mb: int = setting(
        2000, "less room in data_dir, or on the ledger's disk where it can be seen, is reported; 0: never"
    )
    backup_age_max_h: int = setting(
        26, "an older backup is reported; a day, and two hours to make one; 0: backups are not watched"
    )
    postgres_pool_max: int = setting(6, "connections per process to the ledger")
    postgres_timeout_s: int = setting(5, "time-out of a statement; its outcome is unknown then")
    postgres_idle_s: int = setting(10, "an idle transaction is ended after this: facts wait for it")
    ledger_standbys_min: int = setting(
        0, "synchronous standbys that must have a booking before it is acknowledged; 0: none is expected"
    )
    replica_url: str = secret("a replica of the ledger for lists, searches and reports; empty: the ledger")
    replica_lag_max_s: int = setting(5, "a replica that is further behind is not read; the ledger is")
    redis_links_max: int = setting(8, "connections per process to Redis")
    redis_timeout_ms: int = setting(1000, "time-out of a script; its outcome is unknown then")

    # the sale
    hold_ttl_s: int = setting(600, "how long a hold lasts unless the show sets its own")
    hold_life_max_s: int = setting(1800, "a hold is never extended beyond this, counted from its start")
    order_seats_max: int = setting(10, "seats in one hold")
    owner_seats_max: int = setting(10, "seats per buyer and show unless the show sets its own")
    guest_holds_max: int = setting(
        1, "unpaid holds of a guest per show: a browser without an account needs one; 0: no limit"
    )
    range_seats_max: int = setting(
        100,
        "unpaid or free seats per show of all guests and unverified accounts of a range; 0: no limit",
    )
    range_ipv4_bits: int = setting(
        24, "length of an IPv4 address range; a provider rents out 256 neighbours together"
    )
    range_ipv6_bits: int = setting(56, "length of an IPv6 address range: what a household usually gets")
    lapses_per_hour_max: int = setting(
        6, "holds of a buyer that may end unpaid per show and hour before a cool-down; 0: no limit"
    )
    range_lapses_per_hour_max: int = setting(
        60, "the same for all guests and unverified accounts of an address range; 0: no limit"
    )
    lapse_cooldown_s: int = setting(
        900, "how long no seats are held for them after a further hold ended unpaid"
    )
    puzzle_from_holds_per_second: int = setting(
        50, "a show with so many holds of guests per second and process is hot: they solve a puzzle; 0: never"
    )
    puzzle_bits: int = setting(15, "zero bits of the puzzle: 15 take a browser about a second")
    puzzle_wait_s: int = setting(15, "a browser without scripts waits this long instead")
    claim_grace_ms: int = setting(
        100, "a claim outlives its row by this, so that the next buyer finds the row lapsed"
    )
    batch_max: int = setting(128, "callers in one round trip; 1 switches batching off")
    waiting_max: int = setting(
        10_000, "callers per process waiting for a batch before requests are refused as busy"
    )
    ledger_only_max: int = setting(32, "holds under way at once in a process while Redis is unreachable")
    sale_lock_wait_ms: int = setting(
        3000, "a hold, payment or refund waits this long for a locked show, then it is refused as busy"
    )
    waitlist_offer_s: int = setting(
        300, "how long seats are held for a party of the waitlist that is offered them"
    )
    waitlist_keep_s: int = setting(
        120, "how long freed seats wait for a party that they fit; then they are public again"
    )
    waitlist_idle_s: int = setting(
        600, "an empty waitlist ends after this: each beginning and end rebuilds the show's seat map"
    )
    map_fresh_ms: int = setting(100, "minimum pause between two reads of a show's map, per process")
    layout_cache_mb: int = setting(
        256, "memory per process for layouts; 50 000 seats take about 16 MB, 1000 seats 0.3 MB"
    )
    map_cache_mb: int = setting(64, "memory per process for seat maps; about three bytes per seat")
    sweep_pause_ms: int = setting(500, "pause between two sweeps of lapsed bookings")
    sweep_max: int = setting(500, "bookings closed per sweep")
    compare_pause_s: int = setting(5, "pause between two comparisons of map and ledger")
    price_pause_s: int = setting(5, "pause between two demand checks of shows whose prices follow demand")

    # payments
    gateway: str = setting(
        "sandbox",
        "stripe, razorpay, sandbox (no money moves) or none (only free shows can be on sale); "
        "with database_url it must be set",
    )
    gateway_url: str = setting("", "the sandbox's address; empty: the one that is started beside the server")
    gateway_secret: str = secret("signs the sandbox's webhooks and opens its API; several: the newest first")
    gateway_timeout_ms: int = setting(5000, "time-out of a gateway call; its outcome is unknown then")
    gateway_links_max: int = setting(64, "concurrent gateway calls per process")
    gateway_looks_per_second_max: int = setting(
        20, "look-ups of waiting payments by all processes together; Stripe allows 100 calls, 25 in test mode"
    )
    payment_buffer_s: int = setting(120, "a payment may take this long beyond the end of its hold")
    payment_grace_s: int = setting(
        60, "seats stay reserved this long after a payment's deadline if the gateway is silent"
    )
    refund_proposals_h: int = setting(72, "hours in which a second person can approve a refund")
    refunds_at_once_max: int = setting(16, "concurrent refunds per worker")
    webhook_bytes_max: int = setting(65_536, "a longer webhook is refused")
    chargebacks_suspend_tickets: bool = setting(
        True, "tickets of a payment that is disputed admit no visitor until the dispute is won"
    )
    reconcile_pause_s: int = setting(60, "pause between two reconciliations with the gateway")
    public_url: str = setting("", "base URL of this site, for return addresses; empty: from the request")
    stripe_secret_key: str = secret("sk_… or rk_…; decides between live and test mode")
    stripe_publishable_key: str = setting("", "pk_…, for the payment page")
    stripe_webhook_secrets: str = secret("whsec_…, comma-separated; two during rotation")
    stripe_api_url: str = setting("", "base URL of Stripe; empty: api.stripe.com")
    razorpay_key_id: str = setting("", "rzp_live_… or rzp_test_…; public, for the payment page")
    razorpay_key_secret: str = secret("secret of the key id; signs the callbacks of Razorpay's page")
    razorpay_webhook_secrets: str = secret("as set in its dashboard, comma-separated; two during rotation")
    razorpay_account: str = setting("", "acc_…: webhooks of other accounts are rejected; empty: not checked")
    razorpay_api_url: str = setting("", "base URL of Razorpay; empty: api.razorpay.com")

    # facts
    bus_url: str = secret("bus for facts: nats://…, kafka://… or a Redis; empty: the Redis of the holds")
    bus_replicas: int = setting(
        1, "nodes of NATS that store each fact; 3: one of them may be lost. Topics of Kafka have their own"
    )
    bus_messages_max: int = setting(20_000, "facts stored on the bus; older ones are read from the outbox")
    relay_pause_ms: int = setting(100, "pause between two polls of the outbox")
    relay_max: int = setting(500, "facts relayed per batch")
    consumer_parts: int = setting(
        1,
        "parts of each group's facts, divided by show: so many workers can share a group. The same on all "
        "machines",
    )
    facts_keep_h: int = setting(24, "hours that a fact stays replayable after every group has processed it")

    # notices
    mail_url: str = secret("smtp://name:password@host:587?starttls=1, or smtps://…; empty: no mail is sent")
    mail_from: str = setting("", "sender of mails: Box office <tickets@your.domain>")
    mail_ca_file: str = setting("", "certificates (PEM) trusted beside the machine's own; empty: those alone")
    mail_timeout_s: int = setting(20, "time-out of the mail server; the mail is retried later")
    mail_page: int = setting(0, "1, without mail_url: mails are stored and shown publicly at /demo/mail")
    mail_keep_h: int = setting(24, "hours that such mails are stored; they contain ticket codes")
    sms_url: str = secret("SMS provider: POST as JSON, for accounts with a phone number; empty disables SMS")
    push_url: str = secret("push provider: POST as JSON, for accounts with the app; empty disables push")
    notice_lapsing_s: int = setting(
        180, "buyers are warned this long before a hold expires; 0 disables the warning"
    )
    notices_keep_d: int = setting(90, "days that sent notifications are stored")

    # organisers' webhooks
    hook_lenient: int = setting(0, "1: allow http and private addresses; for demos only")
    hook_timeout_s: int = setting(10, "time-out of an organiser's server; the delivery is retried later")
    hook_links_max: int = setting(64, "concurrent deliveries per worker")
    hook_overlap_h: int = setting(24, "hours that the old secret also signs after a rotation")
    hook_off_after_h: int = setting(36, "an endpoint that fails for this many hours is disabled")
    hook_keep_d: int = setting(30, "days that deliveries are stored for inspection and replay")

    # search
    search_pool_max: int = setting(2, "connections per process for searches, separate from those for holds")
    search_timeout_ms: int = setting(1000, "a search that takes longer is stopped and refused")

    # live maps
    viewers_max: int = setting(10_000, "open live maps per process; further ones are refused")
    viewers_per_address_max: int = setting(
        0, "open live maps per address and process; 0: no limit, needed behind a proxy"
    )
    viewer_backlog_bytes_max: int = setting(
        262_144, "unsent changes of a slow viewer before it is disconnected; it resumes from its last id"
    )

    # the web
    body_bytes_max: int = setting(65_536, "a longer request body is refused")
    head_bytes_max: int = setting(65_536, "a longer request line with its headers is refused")
    head_timeout_s: int = setting(10, "a connection whose request head is not complete by then is closed")
    connections_max: int = setting(20_000, "open connections per process; further ones are refused")
    connections_per_address_max: int = setting(
        1000, "of them per address and process; 0: no limit. trusted_proxies are exempt"
    )
    request_timeout_s: int = setting(10, "time limit of a request; then it is refused with Retry-After")
    slow_request_ms: int = setting(1000, "a request that takes longer is logged")
    log_format: str = setting("", "json or text; empty: text on a terminal, else JSON, one object per line")
    access_log: int = setting(0, "1: log every request, not only the slow ones")
    work_address: str = setting(
        "", "host:port where `holdfast work` serves /healthz, /readyz and /metrics; empty: it serves none"
    )
    trusted_proxies: str = setting(
        "127.0.0.1,::1",
        "addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed",
    )
    traces_url: str = secret(
        "collector of OpenTelemetry (OTLP over HTTP): http://127.0.0.1:4318/v1/traces; empty: no traces"
    )
    traces_ratio: float = setting(
        0.01, "share of requests that are traced, 0 to 1; 0.01 costs a busy worker about a hundredth"
    )
    traces_parents: int = setting(
        0, "1: believe traceparent headers of trusted_proxies, which must set or remove those of clients"
    )
    cors_origins: str = setting("", "sites whose pages may call the API, comma-separated, or *; empty: none")

    # people
    access_ttl_s: int = setting(600, "lifetime of an access token")
    refresh_ttl_s: int = setting(30 * 86_400, "lifetime of a refresh token")
    passwords_at_once_max: int = setting(
        2, "argon2 hashes at the same time in a process for known clients; half as many for strangers"
    )
    passwords_waiting_max: int = setting(
        200, "passwords per process waiting for their hash before requests are refused as busy"
    )
    sessions_max: int = setting(200, "open sessions per account; a further login ends the oldest")
    tokens_remembered_max: int = setting(50_000, "verified access tokens cached per process; 1 KB each")
    revocations_refresh_s: int = setting(10, "pause between two reads of the revocation list")
    second_factor_for: str = setting(
        "",
        "who needs a second factor to work: admins, or staff (members of organisations as well); empty: none",
    )
    totp_key: str = secret(
        "encrypts the secrets of authenticator apps in the database; several: the newest first; empty: not"
    )
    logins_per_minute_max: int = setting(10, "wrong passwords per account and address; 0: no limit")
    logins_per_account_hour_max: int = setting(
        100, "wrong passwords per account from all addresses: many guess no faster; 0: no limit"
    )
    logins_per_address_minute_max: int = setting(
        30, "wrong passwords per address for all accounts: lists of stolen passwords; 0: no limit"
    )
    login_known_d: int = setting(
        30,
        "days that the right password makes an address known for its account: guesses from elsewhere do not "
        "lock it out; 100 bytes of Redis each; 0: never",
    )
    logins_house_minute_max: int = setting(
        1200, "wrong passwords of the whole house: each costs 30 ms of a core; 0: no limit"
    )
    signups_per_address_hour_max: int = setting(30, "new accounts per address; 0: no limit")
    signups_house_minute_max: int = setting(600, "new accounts of the whole house; 0: no limit")
    resets_per_account_hour_max: int = setting(
        5, "mails with a link that an address can be made to receive by others; 0: no limit"
    )
    resets_per_address_hour_max: int = setting(20, "requests for such mails per address; 0: no limit")
    resets_house_minute_max: int = setting(
        300, "requests for such mails of the whole house: mail providers block floods; 0: no limit"
    )
    key_requests_per_minute_max: int = setting(600, "requests with one API key; 0: no limit")
    key_requests_per_address_minute_max: int = setting(
        3000, "requests with API keys per address, wrong keys included; 0: no limit"
    )
    oidc_providers: str = secret(
        "sign-in services (OpenID Connect), a JSON list: docs/operating/sign_in_services.md; empty: none"
    )
    oidc_timeout_s: int = setting(5, "time-out of all calls to a sign-in service for one request")
    challenges_per_minute_max: int = setting(120, "sign-ins with a passkey begun per address; 0: no limit")
    requests_per_second_max: int = setting(
        0, "requests per address and process; 0: no limit, needed behind a proxy"
    )
    addresses_max: int = setting(100_000, "addresses tracked per process for rate limits")
    guests_per_minute_max: int = setting(
        120, "guest accounts created per address; 0: no limit, needed behind a proxy"
    )

    # retention
    lapsed_keep_d: int = setting(30, "days that unpaid bookings are stored after they ended; 0: permanently")
    guests_keep_d: int = setting(90, "days that guests without a purchase are stored; 0: permanently")
    invitations_keep_d: int = setting(30, "days that ended invitations are stored; 0: permanently")
    past_shows_keep_d: int = setting(
        400, "days after a show until seat keys, counters, check-ins and funnels are reduced; 0: never"
    )
    queue_keep_d: int = setting(
        30, "days after a show until places in its waiting room are deleted; 0: never"
    )
    personal_keep_d: int = setting(
        1095, "days until addresses of guests and of transferred tickets are removed; 0: never"
    )
    audit_personal_keep_d: int = setting(
        730, "days until addresses and names are erased from entries of the audit log; 0: never"
    )
    idempotency_keep_h: int = setting(24, "hours that answers to Idempotency-Keys are stored; 0: permanently")
    archive_after_d: int = setting(
        800, "days after a show until `holdfast archive` moves it to files; longer than buyers may dispute"
    )
    retention_rows_max: int = setting(100, "rows deleted in one transaction")
    retention_pause_ms: int = setting(500, "pause between two such transactions")

    # tests
    crash_at: str = setting("", "test only: path of the crash-injection file")

    def __post_init__(self) -> None:
        assert 1 <= self.hold_ttl_s <= self.hold_life_max_s <= 86_400
        assert 1 <= self.waitlist_offer_s <= 86_400
        assert 1 <= self.batch_max <= self.waiting_max
        assert self.postgres_pool_max >= 2  # rebuilding a map may need a second connection
        assert 1 <= self.order_seats_max <= 10
        assert 1 <= self.puzzle_bits <= 40
        assert 1 <= self.puzzle_wait_s <= 60
        assert 0 <= self.lapse_cooldown_s <= 86_400
        assert 8 <= self.range_ipv4_bits <= 32
        assert 16 <= self.range_ipv6_bits <= 128
        assert 1 <= self.access_ttl_s <= 3600
        assert self.second_factor_for in ("", "admins", "staff")
        assert 1 <= self.consumer_parts <= 64
        assert 1 <= self.bus_replicas <= 5  # as many as NATS allows
        assert 1 <= self.revocations_refresh_s <= 60
        assert 0 <= self.traces_ratio <= 1
        assert self.log_format in ("", "json", "text")

    @property
    def session_url(self) -> str:
        """The ledger for what needs a session of its own: migrations, commands, searches."""
        return self.database_direct_url or self.database_url

    @classmethod
    def from_env(cls, env: Mapping[str, str], prefix: str = "HOLDFAST_") -> "Config":
        known = {prefix + f.name.upper(): f for f in fields(cls)}
        given = {name: value for name, value in env.items() if name.startswith(prefix)}
        if strange := given.keys() - known.keys():
            raise SystemExit(
                f"no such setting: {', '.join(sorted(strange))} (see docs/operating/settings.md)"
            )
        values: dict[str, Any] = {known[n].name: _read(known[n], n, value) for n, value in given.items()}
        if values.get("database_url"):  # the sandbox moves no money: on a real database it must be chosen
            values.setdefault("gateway", "")
        return cls(**values)


def secret_file_names(prefix: str = "HOLDFAST_") -> dict[str, str]:
    """HOLDFAST_MAIL_URL_FILE → HOLDFAST_MAIL_URL, for every secret. runtime/secret_files.py reads them."""
    names = [prefix + f.name.upper() for f in fields(Config) if f.metadata.get("is_secret")]
    return {f"{name}_FILE": name for name in names}


def _read(f: Field[Any], name: str, text: str) -> str | int | float:
    if isinstance(f.default, str):
        return text
    try:
        return float(text) if isinstance(f.default, float) else int(text)
    except ValueError:
        what = "a number" if isinstance(f.default, float) else "a whole number"
        raise SystemExit(f"{name} must be {what}, not {text!r}") from None
