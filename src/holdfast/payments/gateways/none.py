"""No gateway, for box offices that give all tickets away: free bookings never reach one.

No payment is ever made with it, so every look-up is ABSENT and its list is empty. The saga does not ask it
about payments of a gateway that was configured earlier.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from holdfast.payments.gateway import (
    BadWebhook,
    Charge,
    ChargeOrder,
    Dispute,
    GatewayAnswer,
    ListedPayment,
    RefundResult,
    Webhook,
)

ABSENT = Charge(answer=GatewayAnswer.ABSENT)
NO_PAYMENTS = "This box office does not take payments."


class NoGateway:
    name = "none"
    mode = "live"

    async def charge(self, order: ChargeOrder) -> Charge:
        return Charge(answer=GatewayAnswer.NO, code="no_gateway", reason=NO_PAYMENTS)

    async def look_up(self, *, key: str, reference: str | None) -> Charge:
        return ABSENT

    async def call_off(self, *, key: str, reference: str | None) -> Charge:
        return ABSENT

    async def refund(self, *, key: str, reference: str, amount_minor: int, currency: str) -> RefundResult:
        return RefundResult(answer=GatewayAnswer.NO, reason=NO_PAYMENTS)

    async def look_up_refund(self, *, reference: str) -> RefundResult:
        return RefundResult(answer=GatewayAnswer.UNKNOWN)

    async def find_dispute(self, *, reference: str) -> Dispute | None:
        return None

    async def card_fingerprint(self, method: str) -> str | None:
        return None

    async def list_recent(
        self, *, since: datetime, after: str | None = None
    ) -> tuple[Sequence[ListedPayment], str | None]:
        return [], None

    def parse_webhook(self, raw: bytes, headers: Mapping[bytes, bytes], now: float) -> Webhook:
        raise BadWebhook("gateway")

    async def close(self) -> None:
        """Nothing to close."""
