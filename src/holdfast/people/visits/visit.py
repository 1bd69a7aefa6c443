"""Somebody with a browser, as far as their cookie says. No I/O."""

from dataclasses import dataclass, field
from datetime import datetime

from holdfast.people.account import Account, Role

GUEST_HOST = "guest.invalid"  # RFC 2606: no mail can ever be sent there


@dataclass(frozen=True, slots=True)
class Visit:
    account: Account
    session_id: int
    contact_email: str | None  # where a guest wants letters; None: not said yet, or no guest
    is_guest: bool
    owner_ids: tuple[int, ...]  # whose bookings are theirs: the account first, then guests it once was
    seen_at: datetime = field(compare=False)  # when that was looked up, by the ledger's clock

    @property
    def account_id(self) -> int:
        return self.account.account_id

    @property
    def role(self) -> Role:
        return self.account.role

    @property
    def email(self) -> str | None:
        """Where letters go; None while a guest has not said."""
        return self.contact_email if self.is_guest else self.account.email


def guest_email(name: str) -> str:
    return f"{name}@{GUEST_HOST}"
