"""Every setting there is. docs/operating/settings.md is written from this file, by `make docs`. No I/O.

A setting is read from the environment as HOLDFAST_<NAME>; an unknown name stops the program,
because a misspelt limit that is silently ignored is found on the day of the sale.
"""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any


def setting(default: Any, why: str) -> Any:
    return field(default=default, metadata={"why": why})


def secret(why: str) -> Any:
    """Never in a repr: a config that is logged must not tell it."""
    return field(default="", repr=False, metadata={"why": why})


@dataclass(frozen=True, kw_only=True)
class Config:
    # engines
    database_url: str = setting("", "the ledger; empty: an embedded PostgreSQL in data_dir")
    redis_url: str = setting("", "where holds are decided; empty: an embedded Valkey in data_dir")
    data_dir: str = setting(".holdfast", "where the embedded engines keep their data")
    postgres_pool_max: int = setting(6, "connections a process keeps to the ledger")
    postgres_timeout_s: int = setting(5, "a statement without an answer for this long is unknown")
    postgres_idle_s: int = setting(10, "a transaction that sleeps this long is ended: facts wait for it")
    redis_links_max: int = setting(8, "connections a process keeps to Redis")
    redis_timeout_ms: int = setting(1000, "a script without an answer for this long is unknown")

    # the sale
    hold_ttl_s: int = setting(600, "how long a hold lasts unless the show says otherwise")
    hold_life_max_s: int = setting(1800, "a hold is never extended beyond this, counted from its start")
    order_seats_max: int = setting(10, "seats in one hold")
    owner_seats_max: int = setting(10, "seats a person may have in one show unless the show says otherwise")
    claim_grace_ms: int = setting(
        100, "a claim outlives its row by this, so that who gets past it finds it lapsed"
    )
    batch_max: int = setting(128, "callers in one round trip; 1 switches batching off")
    waiting_max: int = setting(10_000, "callers waiting for a batch before we answer busy")
    ledger_only_max: int = setting(32, "holds under way at once while Redis is unreachable")
    map_fresh_ms: int = setting(100, "a process reads a show's map at most this often")
    sweep_pause_ms: int = setting(500, "pause between two sweeps of lapsed bookings")
    sweep_max: int = setting(500, "bookings one sweep closes")
    compare_pause_s: int = setting(5, "pause between two comparisons of map and ledger")
    price_pause_s: int = setting(5, "pause between two looks at what is sold where prices follow demand")

    # payments
    gateway: str = setting("sandbox", "who moves the money: sandbox, stripe or razorpay")
    gateway_url: str = setting("", "the sandbox's address; empty: the one that is started beside the server")
    gateway_secret: str = secret("signs the sandbox's webhooks and opens its API; several: the newest first")
    gateway_timeout_ms: int = setting(5000, "a gateway without an answer for this long is unknown")
    gateway_links_max: int = setting(64, "charges a process has under way at the gateway at once")
    payment_buffer_s: int = setting(120, "a payment may take this long beyond the end of its hold")
    payment_let_go_s: int = setting(
        60, "a silent gateway keeps seats this long beyond the payment's deadline"
    )
    refunds_at_once_max: int = setting(16, "refunds a worker asks the gateway for at the same time")
    webhook_bytes_max: int = setting(65_536, "a longer webhook is refused")
    reconcile_pause_s: int = setting(60, "pause between two comparisons with the gateway's books")
    public_url: str = setting("", "base URL of this site, for return addresses; empty: from the request")
    stripe_secret_key: str = secret("sk_… or rk_…; decides between live and test mode")
    stripe_publishable_key: str = setting("", "pk_…, for the page where people pay")
    stripe_webhook_secrets: str = secret("whsec_…, comma-separated; two while one follows the other")
    stripe_api_url: str = setting("", "where Stripe is; empty: api.stripe.com")
    razorpay_key_id: str = setting("", "rzp_live_… or rzp_test_…; the page where people pay shows it")
    razorpay_key_secret: str = secret("belongs to the key id; signs what Razorpay's page sends back")
    razorpay_webhook_secrets: str = secret("as set in its dashboard, comma-separated; two while one follows")
    razorpay_account: str = setting("", "acc_…: webhooks of any other are refused; empty: not compared")
    razorpay_api_url: str = setting("", "where Razorpay is; empty: api.razorpay.com")

    # facts
    bus_url: str = setting("", "bus for facts: nats://… or kafka://…; empty: the Redis of the holds")
    bus_messages_max: int = setting(20_000, "facts the bus keeps; older ones are read in the outbox")
    relay_pause_ms: int = setting(100, "pause between two looks for facts to tell")
    relay_max: int = setting(500, "facts relayed per batch")
    facts_keep_h: int = setting(24, "hours that a fact stays replayable after every group has processed it")

    # notices
    mail_url: str = secret("smtp://name:password@host:587?starttls=1, or smtps://…; empty: no mail is sent")
    mail_from: str = setting("", "Box office <tickets@your.domain>: whom mails come from")
    mail_ca_file: str = setting("", "certificates (PEM) trusted beside the machine's own; empty: those alone")
    mail_timeout_s: int = setting(20, "a mail server without an answer for this long is tried later")
    mail_page: int = setting(0, "1, without mail_url: mails are stored and shown publicly at /demo/mail")
    mail_keep_h: int = setting(24, "hours that such mails are stored; they contain ticket codes")
    sms_url: str = secret("where urgent notices are posted as JSON, for who has a phone; empty: nowhere")
    push_url: str = secret("the same, for who has an app")
    notice_lapsing_s: int = setting(180, "people are warned this long before a hold lapses; 0: they are not")
    notices_keep_d: int = setting(90, "days that sent notifications are stored")

    # organisers' webhooks
    hook_lenient: int = setting(0, "1: http and private addresses too, for a demo; strangers name them")
    hook_timeout_s: int = setting(10, "an organiser's server without an answer for this long is tried later")
    hook_links_max: int = setting(64, "deliveries a worker has under way at once")
    hook_overlap_h: int = setting(24, "hours that the old secret signs too, after a new one was made")
    hook_off_after_h: int = setting(36, "an endpoint that has failed for so many hours is switched off")
    hook_keep_d: int = setting(30, "days that deliveries are stored for inspection and replay")

    # search
    search_pool_max: int = setting(2, "connections a process keeps for searches, so that none is a hold's")
    search_timeout_ms: int = setting(1000, "a search that takes longer is stopped and refused")

    # live maps
    viewers_max: int = setting(10_000, "live maps a process has open at once; one more is refused")
    viewers_per_address_max: int = setting(
        0, "live maps an address has open in a process; 0: no limit, as behind a proxy all have the proxy's"
    )
    viewer_backlog_bytes_max: int = setting(
        262_144, "changes a slow viewer has not taken before it is cut off, to come back with its last id"
    )

    # the web
    body_bytes_max: int = setting(65_536, "a longer request body is refused")
    request_timeout_s: int = setting(
        10, "a request without an answer for this long is refused with Retry-After"
    )
    slow_request_ms: int = setting(1000, "a request that takes longer is logged")
    access_log: int = setting(0, "1: log every request, not only the slow ones")
    cors_origins: str = setting("", "sites whose pages may call the API, comma-separated, or *; empty: none")

    # people
    access_ttl_s: int = setting(600, "life of an access token")
    refresh_ttl_s: int = setting(30 * 86_400, "life of a refresh token")
    passwords_at_once_max: int = setting(2, "argon2 hashes computed at the same time in a process")
    passwords_waiting_max: int = setting(200, "passwords waiting for their hash before we answer busy")
    sessions_max: int = setting(200, "sessions an account keeps open; one more login ends the oldest")
    tokens_remembered_max: int = setting(50_000, "verified access tokens a process remembers; 1 KB each")
    revocations_refresh_s: int = setting(10, "pause between two readings of who logged out elsewhere")
    logins_per_minute_max: int = setting(10, "wrong passwords an account takes from one address; 0: no limit")
    requests_per_second_max: int = setting(
        0, "requests an address may send to a process; 0: no limit, as behind a proxy all have the proxy's"
    )
    addresses_max: int = setting(100_000, "addresses a process counts requests of")
    guests_per_minute_max: int = setting(
        600, "guests opened from one address, as many share one; 0: no limit, as where all have a proxy's"
    )

    # tests
    crash_at: str = setting(
        "", "a file that names a point to die at: engines/fault_injection.py; not for you"
    )

    def __post_init__(self) -> None:
        assert 1 <= self.hold_ttl_s <= self.hold_life_max_s <= 86_400
        assert 1 <= self.batch_max <= self.waiting_max
        assert self.postgres_pool_max >= 2  # rebuilding a map may need a second connection
        assert 1 <= self.order_seats_max <= 10
        assert 1 <= self.access_ttl_s <= 3600
        assert 1 <= self.revocations_refresh_s <= 60

    @classmethod
    def from_env(cls, env: Mapping[str, str], prefix: str = "HOLDFAST_") -> "Config":
        known = {prefix + f.name.upper(): f for f in fields(cls)}
        given = {name: value for name, value in env.items() if name.startswith(prefix)}
        if strange := given.keys() - known.keys():
            raise SystemExit(
                f"no such setting: {', '.join(sorted(strange))} (see docs/operating/settings.md)"
            )
        values: dict[str, Any] = {known[n].name: _read(known[n], n, value) for n, value in given.items()}
        return cls(**values)


def _read(f: Field[Any], name: str, text: str) -> str | int:
    if not isinstance(f.default, int):
        return text
    try:
        return int(text)
    except ValueError:
        raise SystemExit(f"{name} must be a whole number, not {text!r}") from None
