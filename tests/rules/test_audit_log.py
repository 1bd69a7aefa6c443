"""Every route by which staff change something is in the audit log, or says here why not."""

import re
from pathlib import Path

from holdfast.routes import ROUTES
from holdfast.web.caller import Role

SRC = Path(__file__).parents[2] / "src" / "holdfast"
ACTION = re.compile(r'"([a-z_]+\.[a-z_]+)"')

# Route → its entry.
RECORDED = {
    "delete_show": "show.deleted",
    "delete_event": "event.deleted",
    "delete_venue": "venue.deleted",
    "delete_hall": "hall.deleted",
    "create_city": "city.created",
    "update_city": "city.changed",
    "create_venue": "venue.created",
    "update_venue": "venue.changed",
    "create_hall": "hall.created",
    "update_hall": "hall.changed",
    "create_layout": "layout.uploaded",
    "import_layout": "layout.uploaded",
    "create_event": "event.created",
    "update_event": "event.changed",
    "upload_poster": "event.changed",
    "remove_poster": "event.changed",
    "create_show": "show.created",
    "update_show": "show.changed",
    "set_price_rules": "price_rules.changed",
    "delete_price_rules": "price_rules.removed",
    "change_show_layout": "seats.withdrawn",
    "create_block": "block.created",
    "update_block": "block.changed",
    "release_block_seats": "block.released",
    "delete_block": "block.released",
    "create_refund": "refund.given",
    "settle_refund": "refund.paid_by_hand",
    "retry_refund": "refund.retried",
    "approve_refund": "refund.approved",
    "reject_refund": "refund.rejected",
    "set_refund_limits": "refund_limit.changed",
    "create_gate_pass": "gate_pass.created",
    "revoke_gate_pass": "gate_pass.revoked",
    "set_door_settings": "door.changed",
    "create_webhook_endpoint": "webhook_endpoint.created",
    "update_webhook_endpoint": "webhook_endpoint.changed",
    "delete_webhook_endpoint": "webhook_endpoint.deleted",
    "rotate_webhook_secret": "webhook_endpoint.secret_changed",
    "replay_webhook_delivery": "webhook_endpoint.replayed",
    "replay_webhook_deliveries": "webhook_endpoint.replayed",
    "set_invoice_seller": "invoice_seller.changed",
    "set_notice_sender": "notice_sender.changed",
    "create_organisation": "organisation.created",
    "update_organisation": "organisation.changed",
    "require_second_factor": "organisation.changed",
    "update_member": "member.changed",
    "remove_member": "member.removed",
    "leave_organisation": "member.removed",
    "transfer_ownership": "organisation.transferred",
    "create_invitation": "invitation.created",
    "resend_invitation": "invitation.created",
    "withdraw_invitation": "invitation.withdrawn",
    "set_house": "house.changed",
    "set_house_second_factor": "house.changed",
    "publish_legal_text": "legal_text.published",
    "publish_organisation_text": "legal_text.published",
    "create_api_key": "api_key.created",
    "rotate_api_key": "api_key.rotated",
    "revoke_api_key": "api_key.revoked",
    "replay_notice": "notice.sent_again",
    "replay_webhook": "gateway_webhook.replayed",
    "add_account": "account.added",
    "set_account_role": "account.role_changed",
    "ban_account": "account.banned",
    "unban_account": "account.unbanned",
    "reset_account": "account.reset",
    "erase_account": "account.erased",
    "remove_second_factor": "account.second_factor_removed",
    "set_show_queue": "queue.changed",
    "open_show_queue": "queue.opened",
    "close_show_queue": "queue.closed",
    "override_show_queue": "queue.overridden",
    "set_show_queue_beacon": "queue.beacon_set",
}
NOT_RECORDED = {
    "preview_price_rules": "changes nothing",
    "compare_show_layout": "changes nothing",
}


def test_every_staff_route_that_writes_is_recorded() -> None:
    writing = {
        route.name
        for route in ROUTES
        if route.role in (Role.ORGANISER, Role.ADMIN) and route.method not in ("GET", "HEAD")
    }

    assert writing == RECORDED.keys() | NOT_RECORDED.keys()


def test_every_listed_action_is_written_somewhere() -> None:
    text = "".join(path.read_text() for path in SRC.glob("*/*.py"))

    assert set(RECORDED.values()) <= set(ACTION.findall(text))
