"""Links that are sent by mail: what each is for, how long it works, and what using one can bring. No I/O.

    mail ──► GET /link/{token}    a page with a button: programs that open links in mails use nothing up
                 └──► POST        uses the token, in the transaction that does what it is for

A token is random text. The ledger has its SHA-256 only, so a copy of the database opens nothing; the token is
made when the mail is composed. It is bound to a purpose, an address and (except for a sign-in) an account.
All but BOOKING work once; using one ends the others of its purpose and address.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Protocol

from msgspec import Meta

if TYPE_CHECKING:
    from holdfast.engines.postgres import Queryable, Row

TOKEN_BYTES = 32
HOUR_S, DAY_S = 3600, 86_400

MailedToken = Annotated[
    str,
    Meta(
        min_length=20,
        max_length=64,
        pattern=r"^[A-Za-z0-9_-]+$(?!\n)",
        examples=["k3Jz0wq7Rf2xYb5NcVmA1tLsPd8GhUeQ"],
    ),
]


class Purpose(StrEnum):
    VERIFY = "verify"  # this address is the account's
    RESET = "reset"  # choose a password
    SIGN_IN = "sign_in"
    CLAIM = "claim"  # accept a ticket that was transferred to this address
    BOOKING = "booking"  # open a guest's booking on any device
    BEGIN = "begin"  # become the first administrator; printed on a terminal, not mailed


# Long enough to be read, short enough that an old mail opens nothing.
TTL_S = {
    Purpose.VERIFY: 3 * DAY_S,
    Purpose.RESET: HOUR_S,
    Purpose.SIGN_IN: HOUR_S // 2,
    Purpose.CLAIM: 400 * DAY_S,  # the ticket ends it: taken back, or the show is over
    Purpose.BOOKING: 400 * DAY_S,  # a change of the address ends it
    Purpose.BEGIN: DAY_S,  # the next start prints a new one
}
INVITATION_TTL_S = 7 * DAY_S  # of an account that an administrator made


@dataclass(frozen=True, slots=True, kw_only=True)
class MailToken:
    purpose: Purpose
    email: str
    account_id: int | None = None
    show_id: int | None = None
    number: int | None = None
    edition: int | None = None


def build_token(row: "Row") -> MailToken:
    names = ("email", "account_id", "show_id", "number", "edition")
    return MailToken(purpose=Purpose(row["purpose"]), **{name: row[name] for name in names})


class PersonMail(StrEnum):
    """Mails about an account; notifications has a text for each."""

    CONFIRM_ADDRESS = "confirm_address"
    RESET_PASSWORD = "reset_password"
    SIGN_IN_LINK = "sign_in_link"
    ADDRESS_CHANGED = "address_changed"  # to the address before
    PASSWORD_CHANGED = "password_changed"
    INVITATION = "invitation"  # to an organisation
    TOTP_ADDED = "totp_added"
    TOTP_REMOVED = "totp_removed"
    PASSKEY_ADDED = "passkey_added"
    PASSKEY_REMOVED = "passkey_removed"
    RECOVERY_CODE_USED = "recovery_code_used"
    RECOVERY_CODES_RENEWED = "recovery_codes_renewed"
    SECOND_FACTOR_REMOVED = "second_factor_removed"  # by an administrator


class PersonMails(Protocol):
    async def request(
        self, on: "Queryable", mail: PersonMail, *, email: str, account_id: int | None, locale: str
    ) -> None:
        """Write a mail, unless this address got many in the last hour; the caller does not learn which."""


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session in the list of its owner."""

    session_id: int
    device: str  # the client's User-Agent, shortened; empty: unknown
    created_at: datetime
    last_used_at: datetime
    is_this: bool
    signed_in_by: str = ""  # "password", "link+totp", "passkey"; empty: unknown
