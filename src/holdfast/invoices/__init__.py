"""Invoices and credit notes, numbered without gaps for each organiser."""

from holdfast.invoices.invoice import Invoice, SellerBody
from holdfast.invoices.routes import invoice_answer
from holdfast.invoices.store import Invoices

__all__ = ["Invoice", "Invoices", "SellerBody", "invoice_answer"]
