"""A field of one line has no line break at its end: in a mail header, a log or a URL that is an injection."""

from typing import Any

import msgspec
import pytest

from holdfast.accounts import Email, Name
from holdfast.accounts.token import TokenClaims
from holdfast.checkin.scan import ScanId
from holdfast.fields import Country, Currency, Slug, Timezone, Title
from holdfast.notifications.notice import SenderBody
from holdfast.payments.payment import ReturnPath
from holdfast.tickets.api import PhoneBody

CLAIMS = {"iss": "holdfast", "aud": "holdfast-api", "sid": 1, "role": "fan", "ver": 1, "iat": 1, "exp": 2}
SENDER = {"from_name": "Hall", "reply_to": "box@hall.example"}


@pytest.mark.parametrize(
    ("type_", "fields", "field", "value"),
    [
        (SenderBody, SENDER, "reply_to", "box@hall.example"),
        (SenderBody, SENDER, "from_name", "Hall"),
        (PhoneBody, {}, "phone", "0123456789"),
        (TokenClaims, CLAIMS, "sub", "17"),
        (Email, None, "", "ann@example.com"),
        (Name, None, "", "Ann"),
        (ScanId, None, "", "scan-1"),
        (ReturnPath, None, "", "/bookings"),
        (Title, None, "", "Hamlet"),
        (Slug, None, "", "mumbai"),
        (Timezone, None, "", "Europe/Berlin"),
        (Country, None, "", "DE"),
        (Currency, None, "", "EUR"),
    ],
)
def test_a_value_with_a_final_newline_is_refused(
    type_: Any, fields: dict[str, Any] | None, field: str, value: str
) -> None:
    def decode(text: str) -> object:
        return msgspec.convert(text if fields is None else {**fields, field: text}, type_)

    decode(value)
    with pytest.raises(msgspec.ValidationError):
        decode(value + "\n")
