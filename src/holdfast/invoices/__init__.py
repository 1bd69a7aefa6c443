"""Invoices and credit notes, numbered without gaps for each organiser."""

from holdfast.invoices.api import invoice_answer
from holdfast.invoices.invoices import Invoices

__all__ = ["Invoices", "invoice_answer"]
