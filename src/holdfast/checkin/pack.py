"""What a gate needs to work without a network: signed by us, sealed for one device. No I/O.

    sealed = ephemeral key 32 │ ChaCha20-Poly1305( key id 1 │ signature 64 │ zlib( msgpack( Pack ) ) )

The key of the seal comes from the device's own X25519 key and one made for this pack alone, so that whoever
finds the file, or reads it on its way, has nothing; and the device knows that it is from us before it reads
any of it. Names and addresses of people are not in it: a stolen device tells seat numbers.
"""

import zlib
from collections.abc import Mapping

import msgspec
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from holdfast.tickets import Codes, TicketKey

PREFIX = b"holdfast pack\0"
KEY_BYTES = 32
SIGNATURE_BYTES = 64
ONLY_ONCE = bytes(12)  # the key seals one message, so its number may be this


class BadPack(Exception):
    """Not a pack of ours, not for this device, or damaged."""


class PackTicket(Struct, frozen=True, array_like=True):
    serial: int
    edition: int
    binding: int
    seat: str
    is_used: bool
    is_inside: bool
    since_s: float = 0.0  # when somebody came in with it, and
    gate: str = ""  # where


class PackShow(Struct, frozen=True):
    show_id: int
    title: str
    starts_at_s: float
    codes: Codes
    reentry: bool
    secrets: dict[int, bytes]  # by key id: for live codes of this show
    tickets: list[PackTicket]
    void: list[int]  # serials that were given back
    newest: int  # serials up to here are in one of the two lists; later ones were sold since


class Pack(Struct, frozen=True):
    pass_id: int
    gate: str
    made_at_s: float
    good_until_s: float
    keys: dict[int, bytes]  # public keys of tickets, and of the next pack
    shows: list[PackShow]


def sealed(pack: Pack, key: TicketKey, device_key: bytes, drawn: bytes) -> bytes:
    """`drawn` are 32 random bytes, used for nothing else."""
    body = zlib.compress(msgspec.msgpack.encode(pack))
    once = X25519PrivateKey.from_private_bytes(drawn)
    public = once.public_key().public_bytes_raw()
    shared = once.exchange(X25519PublicKey.from_public_bytes(device_key))
    plain = bytes((key.key_id,)) + key.sign(PREFIX + body) + body
    return public + _cipher(shared, public, device_key).encrypt(ONLY_ONCE, plain, None)


def opened(raw: bytes, device_private: bytes, trusted: Mapping[int, bytes]) -> Pack:
    """The pack, if it is for this device and one of these public keys, by id, signed it."""
    try:
        device = X25519PrivateKey.from_private_bytes(device_private)
        public, mine = raw[:KEY_BYTES], device.public_key().public_bytes_raw()
        shared = device.exchange(X25519PublicKey.from_public_bytes(public))
        plain = _cipher(shared, public, mine).decrypt(ONLY_ONCE, raw[KEY_BYTES:], None)
        signature, body = plain[1 : 1 + SIGNATURE_BYTES], plain[1 + SIGNATURE_BYTES :]
        Ed25519PublicKey.from_public_bytes(trusted[plain[0]]).verify(signature, PREFIX + body)
        return msgspec.msgpack.decode(zlib.decompress(body), type=Pack)
    except (InvalidTag, InvalidSignature, ValueError, KeyError, IndexError, zlib.error) as error:
        raise BadPack(f"not a pack for this device: {type(error).__name__}") from None


def is_device_key(raw: bytes) -> bool:
    """32 bytes that a secret can be shared with: the few points where it would be 0 are nobody's key."""
    if len(raw) != KEY_BYTES:
        return False
    try:
        X25519PrivateKey.from_private_bytes(bytes(31) + b"\1").exchange(
            X25519PublicKey.from_public_bytes(raw)
        )
    except ValueError:
        return False
    return True


def _cipher(shared: bytes, public: bytes, device_key: bytes) -> ChaCha20Poly1305:
    info = b"holdfast pack" + public + device_key
    return ChaCha20Poly1305(HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(shared))
