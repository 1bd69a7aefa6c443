"""A payment in Stripe's words: intents, refunds, errors, and the form in which requests come. No I/O."""

import json
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from holdfast.sandbox.payment import (
    NewCharge,
    SandboxDispute,
    SandboxPayment,
    SandboxRefund,
    SandboxRefusal,
    SandboxState,
)

STATUS = {
    SandboxState.REQUIRES_PAYER: "requires_payment_method",
    SandboxState.REQUIRES_ACTION: "requires_action",
    SandboxState.PROCESSING: "processing",
    SandboxState.CAPTURED: "succeeded",
    SandboxState.DECLINED: "requires_payment_method",
    SandboxState.CANCELLED: "canceled",
}
CREATE = {
    "amount",
    "currency",
    "confirm",
    "description",
    "expand",
    "metadata",
    "payment_method",
    "return_url",
}
CREATE |= {"automatic_payment_methods"}
QUERY = re.compile(r"metadata\['holdfast_key'\]:'((?:[^'\\]|\\.)*)'")

_encode = msgspec.json.Encoder().encode
Form = dict[str, Any]


def parse_form(text: bytes | str) -> Form:
    """a[b]=1 → {"a": {"b": "1"}}; lists come as numbered keys and leave as lists."""
    form: Form = {}
    for name, value in parse_qsl(text if isinstance(text, str) else text.decode(), keep_blank_values=True):
        first, *rest = re.findall(r"[^\[\]]+", name)
        place, last = form, first
        for part in rest:
            place = place.setdefault(last, {})
            last = part
        place[last] = value
    for name, value in form.items():
        if isinstance(value, dict) and all(key.isdigit() for key in value):
            form[name] = list(value.values())
    return form


def parse_charge(form: Form) -> NewCharge:
    if strange := form.keys() - CREATE:
        raise SandboxRefusal(400, "parameter_unknown", f"Received unknown parameter: {min(strange)}")
    amount = form.get("amount", "")
    if not amount.isdigit() or int(amount) == 0:
        raise SandboxRefusal(400, "parameter_invalid_integer", "Invalid integer: amount")
    currency = form.get("currency", "")
    if not re.fullmatch("[a-z]{3}", currency):
        raise SandboxRefusal(400, "parameter_invalid", "Invalid currency: three letters, small")
    is_confirmed = form.get("confirm") == "true"
    redirects = form.get("automatic_payment_methods", {}).get("allow_redirects", "always")
    if is_confirmed and redirects != "never" and not form.get("return_url"):
        raise SandboxRefusal(
            400, "parameter_missing", "This may send the payer away: a return_url is needed."
        )
    if not is_confirmed and "return_url" in form:
        raise SandboxRefusal(400, "parameter_invalid", "return_url goes with confirm=true only")
    metadata = form.get("metadata", {})
    return NewCharge(
        amount_minor=int(amount),
        currency=currency.upper(),
        reference=metadata.get("holdfast_key") or "-",
        description=form.get("description", ""),
        method=form.get("payment_method", "") if is_confirmed else "",
        return_url=form.get("return_url", ""),
        metadata=json.dumps(metadata),
    )


def intent_id(payment: SandboxPayment) -> str:
    return payment.id.replace("pay_", "pi_", 1)


def payment_id(intent: str) -> str:
    return intent.replace("pi_", "pay_", 1) if intent.startswith("pi_") else "-"


def intent_json(payment: SandboxPayment, url: str, *, expands: bool) -> dict[str, Any]:
    intent = intent_id(payment)
    is_taken = payment.state == SandboxState.CAPTURED
    taken: Any = None
    if payment.state in (SandboxState.CAPTURED, SandboxState.DECLINED):
        taken = charge_json(payment) if expands else intent.replace("pi_", "ch_", 1)
    return {
        "id": intent,
        "object": "payment_intent",
        "amount": payment.amount_minor,
        "amount_received": payment.amount_minor if is_taken else 0,
        "currency": payment.currency.lower(),
        "created": int(payment.created_at),
        "description": payment.description or None,
        "livemode": False,
        "status": STATUS[SandboxState(payment.state)],
        "client_secret": f"{intent}_secret_{payment.page}",
        "metadata": json.loads(payment.metadata),
        "last_payment_error": failure_json(payment),
        "next_action": next_action(payment, url),
        "latest_charge": taken,
    }


def charge_json(payment: SandboxPayment) -> dict[str, Any]:
    return {
        "id": intent_id(payment).replace("pi_", "ch_", 1),
        "object": "charge",
        "amount": payment.amount_minor,
        "amount_refunded": payment.refunded_minor,
        "payment_intent": intent_id(payment),
        "payment_method_details": {"type": "card", "card": {"fingerprint": payment.card}},
    }


def next_action(payment: SandboxPayment, url: str) -> dict[str, Any] | None:
    if payment.state != SandboxState.REQUIRES_ACTION:
        return None
    redirect = {"url": f"{url}/pay/{payment.page}", "return_url": payment.return_url}
    return {"type": "redirect_to_url", "redirect_to_url": redirect}


def failure_json(payment: SandboxPayment) -> dict[str, Any] | None:
    if payment.state != SandboxState.DECLINED:
        return None
    # Stripe says card_declined and, beside it, why; an expired card has a code of its own.
    code = payment.code if payment.code == "expired_card" else "card_declined"
    return {"type": "card_error", "code": code, "decline_code": payment.code, "message": payment.reason}


def refund_json(refund: SandboxRefund, metadata: dict[str, str]) -> dict[str, Any]:
    return {
        "id": refund.id,
        "object": "refund",
        "amount": refund.amount_minor,
        "created": int(refund.created_at),
        "payment_intent": refund.payment_id.replace("pay_", "pi_", 1),
        "status": "succeeded" if refund.state == "succeeded" else "failed",
        "metadata": metadata,
    }


DISPUTES = {"open": "needs_response", "won": "won", "lost": "lost"}


def dispute_json(dispute: SandboxDispute, currency: str) -> dict[str, Any]:
    return {
        "id": dispute.id,
        "object": "dispute",
        "amount": dispute.amount_minor,
        "currency": currency.lower(),
        "payment_intent": dispute.payment_id.replace("pay_", "pi_", 1),
        "reason": dispute.reason,
        "status": DISPUTES[dispute.state],
    }


def list_json(items: Sequence[dict[str, Any]], *, is_more: bool, kind: str = "list") -> dict[str, Any]:
    return {"object": kind, "url": "/v1/payment_intents", "has_more": is_more, "data": list(items)}


def render_stripe(
    made: SandboxPayment | SandboxRefund | SandboxRefusal, url: str, form: Form
) -> tuple[int, bytes]:
    match made:
        case SandboxRefusal():
            return render_error(made)
        case SandboxRefund():
            return 200, _encode(refund_json(made, form.get("metadata", {})))
        case SandboxPayment():
            intent = intent_json(made, url, expands="latest_charge" in form.get("expand", []))
            if (failure := intent["last_payment_error"]) is not None:
                return 402, _encode({"error": {**failure, "payment_intent": intent}})
            return 200, _encode(intent)


def render_error(refused: SandboxRefusal) -> tuple[int, bytes]:
    """Stripe's type and code for ours."""
    status, code, kind = refused.status, refused.code, "invalid_request_error"
    error = {"message": refused.reason}
    if refused.code in ("idempotency_error", "key_in_flight"):
        kind, code = "idempotency_error", "idempotency_key_in_use" if status == 409 else ""
    elif refused.code.startswith("payment_"):
        status, code = 400, "payment_intent_unexpected_state"
    elif refused.code == "amount_too_large":
        code = "charge_already_refunded" if " 0 " in refused.reason else "amount_too_large"
    elif refused.code == "no_such_method":
        code, error["param"] = "resource_missing", "payment_method"
    elif status >= 500:
        kind = "api_error"
    return status, _encode({"error": {"type": kind, **({"code": code} if code else {}), **error}})
