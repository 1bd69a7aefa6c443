"""How a delivery is signed: the Standard Webhooks specification, symmetric. No I/O.

signed   webhook-id "." webhook-timestamp "." body
header   v1,<base 64 of HMAC-SHA256>, one for each secret, a space between
secret   whsec_<base 64>
"""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Iterable

SECRET_BYTES = 32
PREFIX = "whsec_"


def shown(secret: bytes) -> str:
    return PREFIX + b64encode(secret).decode()


def signatures(secrets: Iterable[bytes], message_id: str, at_s: int, body: bytes) -> str:
    signed = b"%s.%d.%s" % (message_id.encode(), at_s, body)
    return " ".join(
        "v1," + b64encode(hmac.digest(secret, signed, hashlib.sha256)).decode() for secret in secrets
    )


def headers(secrets: Iterable[bytes], message_id: str, at_s: int, body: bytes) -> dict[str, str]:
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": signatures(secrets, message_id, at_s, body),
        "content-type": "application/json",
        "user-agent": "Holdfast-Webhooks/1",
    }
