"""Which database has which table. No I/O.

    home ──── people, catalogue: REPLICATED to every pod by PostgreSQL's logical replication
      │       accounts' secrets, search, invoices: HOME_ONLY
      ▼
    pod ───── rows of the sale of its shows: OF_A_SHOW, they move with the show
              queues, leases, checkpoints: LOCAL, every database has its own

The home database is a pod, too: of all shows that no other pod owns. A test checks that every table of the
schema is in exactly one of these lists.
"""

REPLICATED = (
    *("account", "organisation", "membership", "house", "house_rule", "legal_text"),
    *("city", "venue", "layout", "layout_organiser", "hall", "event", "show", "show_time_change"),
    *("price", "show_terms", "price_plan", "price_change"),
    *("ticket_key", "revoked_ticket_key", "gate_pass", "gate_pass_show"),
    *("organiser_sender", "webhook_endpoint", "invoice_seller", "refund_limit"),
    *("show_pod", "pod_mark"),
)
# What an organiser decides about a sale is replicated; the state of its map is the pod's that sells it.
SALE = "sale"
SALE_COLUMNS = (
    *("show_id", "opens_at", "closes_at", "cancelled", "owner_seats_max", "revision", "hidden"),
    *("filed_at", "filed_as"),
)

HOME_ONLY = (
    *("session", "refresh_token", "session_cookie", "session_guest", "signing_key", "mail_token"),
    *("passkey", "totp", "recovery_code", "sign_in_step", "oidc_identity", "consent"),
    *("api_key", "api_key_secret", "invitation", "price_rules_history", "poster_image"),
    *("listing", "listing_show", "listing_venue", "listing_word", "listing_due", "listing_tally"),
    *("invoice", "invoice_count", "pod", "erasure_due"),
)

# Copied in this order when a show moves.
OF_A_SHOW = (
    *("booking", "taken_seat", "owner_count", "party_count", "booking_move", "seat_block", "reserved_seat"),
    *("payment", "refund", "refund_proposal", "chargeback", "journal", "gateway_webhook"),
    *("ticket", "entry_policy", "ticket_transfer", "ticket_resend", "check_in", "check_in_conflict"),
    *("waiting_room", "queue", "queue_place", "queue_turn", "queue_log"),
    *("waitlist", "waitlist_entry", "waitlist_offer", "waitlist_return"),
    *("report_seat", "report_stage", "report_past_stage", "report_refund", "seat_demand"),
)

LOCAL = (
    *("outbox", "fact_log", "consumer_group", "parked_fact", "consumed_fact"),
    *("notice", "stored_message", "webhook_delivery", "webhook_try", "gate_search", "web_load"),
    *("gateway_budget", "reconciliation_run", "payment_difference", "idempotent_response"),
    *("ledger_mark", "backup_made", "job_turn", "retention_pass", "audit_chain", "audit_entry"),
    *("pod_identity", "show_copy", "schema_step", "schema_functions"),
)

# Every transaction that changes a sale writes to one of these; the other tables follow in the same one. A
# webhook from a gateway is written by itself.
GUARDED = (
    *("booking", "seat_block", "payment", "refund", "refund_proposal", "chargeback", "gateway_webhook"),
    *("ticket", "entry_policy", "ticket_transfer", "check_in", "check_in_conflict"),
    *("waiting_room", "queue", "queue_place", "queue_turn"),
    *("waitlist", "waitlist_entry", "waitlist_offer", "waitlist_return", "reserved_seat"),
)

# Tables of a show whose identity numbers the pods share out among themselves: see setup.py.
NUMBERED = (
    *("booking_move", "check_in", "check_in_conflict", "queue_log", "seat_demand"),
    *("waitlist_return", "refund_proposal"),
)
