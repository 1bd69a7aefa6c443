"""Invoices as PDF: one A4 page each."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.invoices.invoices import Invoice
from holdfast.money import format_money
from holdfast.pdf import FPDF
from holdfast.tickets import Typeface

LEFT, WIDTH = 20.0, 170.0  # mm
LINE = 6.0


@dataclass(frozen=True, slots=True)
class InvoiceSubject:
    """What an invoice is for, in words."""

    title: str
    when: str
    labels: dict[int, str]  # of seats
    reference: str
    owner: str


def collect_texts(papers: Sequence[Invoice], sold: InvoiceSubject) -> list[str]:
    """Every text that a person typed: the fonts must have its letters."""
    sellers = [
        text for one in papers for text in (one.seller.name, one.seller.address, one.seller.tax_number)
    ]
    amounts = [format_money(minor, one.currency) for one in papers for _, minor in one.lines]
    return [sold.title, sold.when, sold.owner, *sold.labels.values(), *sellers, *amounts]


def render_pdf(papers: Sequence[Invoice], sold: InvoiceSubject, typeface: Typeface) -> bytes:
    sheet = FPDF(format="A4")
    spelling = dict(typeface.spelling)
    sheet.add_font("text", "", typeface.regular)
    sheet.add_font("text", "B", typeface.bold)
    names = [f"more{place}" for place in range(len(typeface.fallbacks))]
    for name, path in zip(names, typeface.fallbacks, strict=True):
        sheet.add_font(name, "", path)
    sheet.set_font("text", "", 10)
    sheet.set_fallback_fonts(names, exact_match=False)
    sheet.set_text_shaping(True)
    sheet.set_margins(LEFT, LEFT)
    sheet.set_title(papers[0].title)

    def write(text: str, size: float = 10, style: str = "", align: str = "L") -> None:
        sheet.set_font("text", style, size)
        clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text.translate(spelling))
        sheet.multi_cell(WIDTH, size * 0.5, clean, align=align, new_x="LMARGIN", new_y="NEXT")

    for paper in papers:
        sheet.add_page()
        write("\n".join(part for part in (paper.seller.name, paper.seller.address) if part))
        if paper.seller.tax_number:
            write(f"Tax number {paper.seller.tax_number}")
        sheet.ln(3 * LINE)
        write(sold.owner)
        sheet.ln(2 * LINE)
        write(paper.title, 16, "B")
        write(f"{paper.issued_at:%Y-%m-%d} · booking {sold.reference}")
        sheet.ln(LINE)
        write(f"{sold.title}\n{sold.when}\n{', '.join(sold.labels[seat] for seat in paper.seats)}")
        sheet.ln(LINE)
        for what, minor in [*paper.lines, ("Total", paper.total_minor)]:
            top = sheet.get_y()
            style = "B" if what == "Total" else ""
            write(what, 11, style)
            sheet.set_xy(LEFT, top)
            write(format_money(minor, paper.currency), 11, style, "R")
        if paper.tax_minor == 0:
            write("No tax is included.", 9)
    return bytes(sheet.output())
