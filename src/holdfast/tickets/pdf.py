"""Tickets on paper: three to a sheet of A4, each with its own code. It reads its fonts.

The code is drawn, not pasted as a picture: sharp on every printer, and small. What paper cannot do (a show
whose codes change) it says, instead of printing a code that would not open the door.
"""

from collections.abc import Sequence

from holdfast.pdf import FPDF
from holdfast.tickets.issued import PrintedTicket, Standing, TicketShow, Typeface
from holdfast.tickets.qr import QUIET, matrix
from holdfast.tickets.texts import TicketTexts

MARGIN, GAP = 12.0, 5.0  # mm
A_SHEET = 3
WIDTH, HEIGHT = 186.0, 86.0
QR_SIDE = 56.0
TEXT_WIDTH = WIDTH - QR_SIDE - 20
WORTHLESS = frozenset({Standing.VOID, Standing.USED, Standing.GIVEN_AWAY, Standing.OFFERED})
INK, QUIET_INK, LINE = (20, 24, 33), (95, 102, 115), (205, 210, 218)


def texts_of(occasion: TicketShow, tickets: Sequence[PrintedTicket], texts: TicketTexts) -> list[str]:
    """Everything on the sheet: the fonts must have its letters."""
    shown = [occasion.title, occasion.hall, occasion.venue, occasion.address, occasion.city]
    shown += [texts.when(occasion), *texts.all]
    return [*shown, *(text for t in tickets for text in (t.seat, t.section, t.row, t.category, t.price))]


def pdf_file(
    occasion: TicketShow, tickets: Sequence[PrintedTicket], texts: TicketTexts, typeface: Typeface
) -> bytes:
    sheet = _Sheet(texts, typeface)
    sheet.set_title(f"{texts['tickets']}: {occasion.title}")
    sheet.set_lang(texts.locale.replace("_", "-"))
    for place, ticket in enumerate(tickets):
        if place % A_SHEET == 0:
            sheet.add_page()
        sheet.ticket(MARGIN + place % A_SHEET * (HEIGHT + GAP), occasion, ticket)
    return bytes(sheet.output())


class _Sheet(FPDF):
    def __init__(self, texts: TicketTexts, typeface: Typeface) -> None:
        super().__init__(format="A4")
        self._texts = texts
        self._spelling = dict(typeface.spelling)
        self.set_auto_page_break(False)
        self.add_font("text", "", typeface.regular)
        self.add_font("text", "B", typeface.bold)
        names = [f"more{place}" for place in range(len(typeface.fallbacks))]
        for name, path in zip(names, typeface.fallbacks, strict=True):
            self.add_font(name, "", path)
        self.set_font("text", "", 10)
        self.set_fallback_fonts(names, exact_match=False)
        # Without it Indic letters stand beside each other instead of joining.
        self.set_text_shaping(typeface.joins)

    def ticket(self, top: float, occasion: TicketShow, ticket: PrintedTicket) -> None:
        left = MARGIN
        self.set_draw_color(*LINE)
        self.rect(left, top, WIDTH, HEIGHT, style="D", round_corners=True, corner_radius=3)
        self.set_dash_pattern(1.2, 1.2)
        fold = left + WIDTH - QR_SIDE - 12
        self.line(fold, top + 5, fold, top + HEIGHT - 5)
        self.set_dash_pattern()
        at = self._words(left + 7, top + 6, occasion.title, size=17, style="B", lines_max=2)
        at = self._words(left + 7, at + 1, self._texts.when(occasion), size=11)
        where = f"{occasion.hall} · {occasion.venue}"
        at = self._words(left + 7, at + 1, where, size=11, lines_max=2)
        place = ", ".join(part for part in (occasion.address, occasion.city) if part)
        at = self._words(left + 7, at, place, size=9, ink=QUIET_INK)
        at = max(at + 2, top + 44)
        seat = f"{ticket.section} · {self._texts.seat(ticket)}"
        at = self._words(left + 7, at, seat, size=15, style="B")
        trait = "" if ticket.trait == "n" else self._texts[f"trait_{ticket.trait}"]
        more = " · ".join(part for part in (ticket.category, ticket.price, trait) if part)
        self._words(left + 7, at, more, size=10)
        self._words(left + 7, top + HEIGHT - 13, self._texts["terms"], size=7, ink=QUIET_INK, lines_max=3)
        self._right(left + WIDTH - QR_SIDE - 6, top + 6, ticket)

    def _right(self, left: float, top: float, ticket: PrintedTicket) -> None:
        if ticket.code is not None:
            self._qr(left, top, ticket.code)
        else:
            notice = self._texts[ticket.notice if ticket.worth in WORTHLESS else "on_the_phone"]
            self._words(left, top + 15, notice, size=11, width=QR_SIDE, lines_max=5)
        self._words(left, top + QR_SIDE + 2, ticket.reference, size=15, style="B", width=QR_SIDE, align="C")
        self._words(
            left, top + QR_SIDE + 9, ticket.ticket_id, size=7, ink=QUIET_INK, width=QR_SIDE, align="C"
        )

    def _qr(self, left: float, top: float, code: str) -> None:
        """Dark stretches of each row as one rectangle: a tenth of the drawing, and no hairlines between."""
        rows = matrix(code)
        module = QR_SIDE / (len(rows) + 2 * QUIET)
        self.set_fill_color(0, 0, 0)
        for y, row in enumerate(rows):
            x = 0
            while x < len(row):
                length = next((n for n, dark in enumerate(row[x:]) if not dark), len(row) - x)
                if length:
                    at = (left + (x + QUIET) * module, top + (y + QUIET) * module)
                    self.rect(*at, length * module, module, style="F")
                x += max(1, length)

    def _words(self, left: float, top: float, text: str, *, size: float, **how: object) -> float:
        """Text in a column, shortened to its lines; where it ends."""
        width = how.get("width", TEXT_WIDTH)
        assert isinstance(width, float | int)
        ink = how.get("ink", INK)
        assert isinstance(ink, tuple)
        lines_max = how.get("lines_max", 1)
        assert isinstance(lines_max, int)
        self.set_text_color(*ink)
        self.set_font("text", str(how.get("style", "")), size)
        text = _printable(text.translate(self._spelling))
        height = size * 0.48
        self.set_xy(left, top)
        lines = self.multi_cell(width, height, text, dry_run=True, output="LINES")
        assert isinstance(lines, list)
        if len(lines) > lines_max:
            lines = [*lines[: lines_max - 1], lines[lines_max - 1].rstrip()[:-1] + "…"]
        for place, line in enumerate(lines):
            self.set_xy(left, top + place * height)
            self.cell(width, height, line, align=str(how.get("align", "L")))
        return top + len(lines) * height


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
