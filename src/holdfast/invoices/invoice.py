"""An invoice, or a credit note that takes some of one back. No I/O."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec


class SellerBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Who sells, as it is printed on invoices from now on."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"\S")]
    address: Annotated[str, msgspec.Meta(max_length=500)] = ""
    tax_number: Annotated[str, msgspec.Meta(max_length=50)] = ""


@dataclass(frozen=True, slots=True)
class Invoice:
    organiser_id: int
    serial: int
    credits: int | None  # the serial of the invoice that this credit note is for
    seats: tuple[int, ...]
    amount_minor: int
    fee_minor: int
    tax_minor: int
    currency: str
    seller: SellerBody
    issued_at: datetime

    @property
    def name(self) -> str:
        return spelt_serial(self.organiser_id, self.serial)

    @property
    def title(self) -> str:
        if self.credits is None:
            return f"Invoice {self.name}"
        return f"Credit note {self.name} for invoice {spelt_serial(self.organiser_id, self.credits)}"

    @property
    def lines(self) -> list[tuple[str, int]]:
        """What it is made of; of a credit note, what comes back."""
        sign = 1 if self.credits is None else -1
        base_minor = self.amount_minor - self.fee_minor - self.tax_minor
        parts = [("Tickets", base_minor), ("Service fee", self.fee_minor), ("Tax", self.tax_minor)]
        return [(what, sign * minor) for what, minor in parts if minor]

    @property
    def total_minor(self) -> int:
        return self.amount_minor if self.credits is None else -self.amount_minor


def spelt_serial(organiser_id: int, serial: int) -> str:
    return f"{organiser_id}-{serial:06d}"
