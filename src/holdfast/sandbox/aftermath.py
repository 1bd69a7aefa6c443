"""What happens to money after it was captured or refunded: refunds that the bank returns, and disputes."""

from msgspec.structs import replace

from holdfast.sandbox.database import DatabaseWriter, SandboxDatabase, new_id
from holdfast.sandbox.payment import (
    DISPUTE_STATES,
    SandboxDispute,
    SandboxRefund,
    SandboxRefusal,
    SandboxState,
    dispute_json,
    payment_json,
    refund_json,
)


async def fail_refund(database: SandboxDatabase, refund_id: str) -> SandboxRefund:
    """The payer's bank returns a refund that had succeeded."""

    def fail(writer: DatabaseWriter) -> SandboxRefund:
        refund = writer.refund(refund_id)
        if refund.state != "succeeded":
            raise SandboxRefusal(400, "refund_not_succeeded", f"This refund is {refund.state}.")
        failed = replace(refund, state="failed", reason="The bank returned the refund.")
        writer.fail_refund(failed)
        about = {
            "payment": payment_json(writer.payment(refund.payment_id), ""),
            "refund": refund_json(failed),
        }
        writer.add_webhook("refund.failed", refund.payment_id, about)
        return failed

    return await database.write(fail)


async def set_dispute(database: SandboxDatabase, payment_id: str, state: str) -> SandboxDispute:
    """The payer disputes a payment, or the dispute ends: open, won or lost."""
    if state not in DISPUTE_STATES:
        raise SandboxRefusal(400, "invalid_request", f"state is one of {', '.join(DISPUTE_STATES)}")

    def dispute(writer: DatabaseWriter) -> SandboxDispute:
        payment = writer.payment(payment_id)
        if payment.state != SandboxState.CAPTURED:
            raise SandboxRefusal(400, "payment_not_captured", f"This payment is {payment.state}.")
        new = SandboxDispute(
            0, new_id("dp"), payment.id, payment.amount_minor, state, "fraudulent", writer.now
        )
        stored = writer.put_dispute(new)
        about = {"payment": payment_json(payment, ""), "dispute": dispute_json(stored, payment.currency)}
        writer.add_webhook(f"dispute.{state}", payment.id, about)
        return stored

    return await database.write(dispute)
