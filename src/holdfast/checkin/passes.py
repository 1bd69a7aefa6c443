"""What an organiser asks for a pass, and what is told of one. No I/O."""

from base64 import b64decode
from binascii import Error
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.checkin.pack import is_device_key
from holdfast.checkin.verdict import Moment
from holdfast.errors import Invalid
from holdfast.tickets import Codes

SHOWS_MAX = 20  # of one pass: a cinema's evening
UPLOAD_GRACE_S = 2 * 86_400  # a pass that is over may still tell what happened while it was not
ONE_LINE = r"^[^\x00-\x1f\x7f]*$(?!\n)"

ShowId = Annotated[int, Meta(ge=1, le=2**63 - 1)]
GateName = Annotated[str, Meta(min_length=1, max_length=60, pattern=ONE_LINE, examples=["North"])]
DeviceName = Annotated[
    str, Meta(min_length=1, max_length=120, pattern=r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$(?!\n)")
]
DeviceKey = Annotated[str, Meta(min_length=44, max_length=44)]  # X25519, base 64


class NewPass(Struct, forbid_unknown_fields=True, frozen=True):
    shows: Annotated[list[ShowId], Meta(min_length=1, max_length=SHOWS_MAX)]
    gate: GateName
    name: DeviceName = "A device"
    starts_at: Moment | None = None  # unless said: six hours before the first of the shows
    ends_at: Moment | None = None  # unless said: two hours after the last
    email: Annotated[str, Meta(min_length=3, max_length=254)] | None = None  # of somebody of the role gate


class PassPage(Struct, frozen=True):
    pass_id: int
    gate: str
    name: str
    shows: list[int]
    starts_at: datetime
    ends_at: datetime
    revoked_at: datetime | None
    has_device: bool


class MadePass(Struct, frozen=True):
    gate_pass: PassPage
    code: str | None  # signs a device in; told this once
    qr_svg: str | None


class PassList(Struct, frozen=True):
    passes: list[PassPage]


class PassesAsked(Struct, forbid_unknown_fields=True, frozen=True):
    show: ShowId | None = None


class SignInBody(Struct, forbid_unknown_fields=True, frozen=True):
    code: Annotated[str, Meta(min_length=8, max_length=64)]
    device_key: DeviceKey


class DeviceBody(Struct, forbid_unknown_fields=True, frozen=True):
    device_key: DeviceKey


class SignedInDevice(Struct, frozen=True):
    access_token: str
    token_type: str
    expires_in: int
    pass_id: int
    keys: dict[str, str]  # public keys by id, base 64: packs are signed with one of them


class DeviceBound(Struct, frozen=True):
    pass_id: int
    keys: dict[str, str]


class PackPage(Struct, frozen=True):
    pass_id: int
    pack: str  # sealed for the device, base 64


class DoorBody(Struct, forbid_unknown_fields=True, frozen=True):
    codes: Codes = Codes.FIXED
    reentry: bool = True


class ConflictPage(Struct, frozen=True, omit_defaults=True):
    """Two let in with one ticket, or one with a worthless one. First and second by the devices' clocks."""

    why: str
    raised_at: datetime
    second_gate: str
    second_at: datetime
    seat: str | None = None
    reference: str | None = None
    first_gate: str | None = None
    first_at: datetime | None = None


class ConflictList(Struct, frozen=True):
    conflicts: list[ConflictPage]


def device_key(text: str) -> bytes:
    """The 32 bytes, or Invalid."""
    try:
        raw = b64decode(text, validate=True)
    except (Error, ValueError):
        raw = b""
    if not is_device_key(raw):
        raise Invalid(field="device_key", detail="Expected an X25519 public key in base 64.")
    return raw
