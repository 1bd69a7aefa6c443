"""Refusals about invoices. No I/O.

Refusal
├── NoInvoice           409  nothing was paid, so there is none
└── NoSeller            404  the organiser has not set the seller
"""

from holdfast.errors import Refusal


class NoInvoice(Refusal):
    """There is no invoice for this booking: it is not confirmed, or it was free.

    Pay for it first. A booking that cost nothing has none.
    """

    code, status, title = "no_invoice", 409, "There is no invoice"


class NoSeller(Refusal):
    """You have not set the seller yet, so invoices show the name of your account.

    Set it with `PUT /admin/invoices/seller`.
    """

    code, status, title = "no_seller", 404, "No seller"
