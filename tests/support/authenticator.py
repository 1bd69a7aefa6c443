"""An authenticator in software: makes passkeys and signs challenges as a browser would send them."""

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import cbor2
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256

ORIGIN = "http://box.office"
PRESENT, VERIFIED, ATTESTED = 1, 4, 64
ES256 = {1: 2, 3: -7, -1: 1}  # COSE: an elliptic key, its algorithm, its curve


def encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authenticator:
    """With one passkey. Attributes may be changed to send what should be refused."""

    def __init__(self, origin: str = ORIGIN) -> None:
        self.origin = origin
        self.count = 0
        self.flags = PRESENT | VERIFIED
        self.credential_id = secrets.token_bytes(32)
        self._key = generate_private_key(SECP256R1())

    def create(self, options: dict[str, Any]) -> dict[str, Any]:
        """navigator.credentials.create, in JSON."""
        numbers = self._key.public_key().public_numbers()
        key = cbor2.dumps({**ES256, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")})
        attested = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + key
        data = self._data(options["rp"]["id"], self.flags | ATTESTED) + attested
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", options)
        return self._credential(
            clientDataJSON=encode(client), attestationObject=encode(attestation), transports=["internal"]
        )

    def get(self, options: dict[str, Any]) -> dict[str, Any]:
        """navigator.credentials.get, in JSON."""
        self.count += 1
        data, client = self._data(options["rpId"], self.flags), self._client("webauthn.get", options)
        signature = self._key.sign(data + hashlib.sha256(client).digest(), ECDSA(SHA256()))
        return self._credential(
            clientDataJSON=encode(client), authenticatorData=encode(data), signature=encode(signature)
        )

    def _data(self, rp_id: str, flags: int) -> bytes:
        return hashlib.sha256(rp_id.encode()).digest() + bytes([flags]) + self.count.to_bytes(4, "big")

    def _client(self, kind: str, options: dict[str, Any]) -> bytes:
        return json.dumps({"type": kind, "challenge": options["challenge"], "origin": self.origin}).encode()

    def _credential(self, **response: Any) -> dict[str, Any]:
        name = encode(self.credential_id)
        return {"id": name, "rawId": name, "type": "public-key", "response": response}
