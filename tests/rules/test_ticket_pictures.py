"""Codes are readable by independent decoders, from a page, a picture and a printed sheet (R30)."""

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from string import Template
from typing import Any
from xml.etree import ElementTree

import pypdfium2  # type: ignore[import-untyped]
import pytest
import zxingcpp
from icalendar import Calendar
from PIL import Image, ImageDraw

from holdfast.accounts import LANGUAGES
from holdfast.bookings import public_id, reference
from holdfast.tickets import Codes, Standing, Ticket, TicketKey, TicketShow
from holdfast.tickets.calendar import calendar_file
from holdfast.tickets.fonts import load_letters, render_tickets, typeface_for
from holdfast.tickets.issued import PrintedTicket
from holdfast.tickets.mobile_page_api import SHELL, STYLE, policy, ticket_html
from holdfast.tickets.pdf import texts_of
from holdfast.tickets.qr import matrix, png, svg
from holdfast.tickets.texts_files import texts_for
from holdfast.tickets.ticket import fixed_code, live_code

ENGLISH = texts_for("en_GB")
NUMBER = 123_456
KEY = TicketKey(1, bytes(32), bytes(32), 0.0)
CODE = fixed_code(KEY, Ticket(7, 123_456, 1))
STARTS_AT = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
OCCASION = TicketShow(
    show_id=7,
    title="Crème Brûlée in Łódź",
    hall="Grand Hall",
    venue="Théâtre de l'Œuvre",
    address="12 rue de Clichy",
    city="Mumbai",
    starts_at=STARTS_AT,
    ends_at=STARTS_AT + timedelta(hours=2),
    starts_local=STARTS_AT.astimezone(timezone(timedelta(hours=5, minutes=30))),
    timezone="Asia/Kolkata",
    cancelled=False,
    revision=3,
)
TICKET = PrintedTicket(
    ticket_id="abcdefghijklmnopqrst",
    reference="ABCD2345",
    seat="J-12",
    section="Stalls",
    row="J",
    seat_number="12",
    category="Gold",
    trait="n",
    price="₹500.00",
    worth=Standing.GOOD,
    code=CODE,
)


def decoded(image: Image.Image) -> set[str]:
    return {found.text for found in zxingcpp.read_barcodes(image)}


def sheets(pdf: bytes) -> list[Image.Image]:
    return [page.render(scale=2).to_pil() for page in pypdfium2.PdfDocument(pdf)]


def words(pdf: bytes) -> str:
    return " ".join(page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(pdf))


class TestQr:
    @pytest.mark.parametrize("code", [CODE, live_code(KEY, Ticket(7, 9, 2), bytes(32), 0.0)])
    def test_a_png_is_read_by_another_decoder(self, code: str) -> None:
        assert decoded(Image.open(io.BytesIO(png(code)))) == {code}

    def test_an_svg_draws_the_same_modules(self) -> None:
        """Its strokes, laid on paper by hand and read."""
        tree = ElementTree.fromstring(svg(CODE))
        side = int(tree.attrib["viewBox"].split()[-1])
        strokes = tree.findall(".//{http://www.w3.org/2000/svg}path")[-1].attrib["d"]

        assert decoded(drawn(strokes, side)) == {CODE}

    def test_a_ticket_is_37_modules_wide(self) -> None:
        assert len(matrix(CODE)) == 37


def drawn(strokes: str, side: int, scale: int = 8) -> Image.Image:
    """M4 4.5h7m2 0h1…: pen to a place, then strokes of one module's height."""
    image = Image.new("L", (side * scale, side * scale), 255)
    pen, x, y = ImageDraw.Draw(image), 0.0, 0.0
    for command in strokes.replace("M", " M").replace("m", " m").replace("h", " h").split(" "):
        if not command:
            continue
        if command[0] in "Mm":
            kind, start = command[0], float(command[1:])
            continue
        if command[0] == "h":
            width = float(command[1:])
            pen.rectangle((x * scale, (y - 0.5) * scale, (x + width) * scale - 1, (y + 0.5) * scale - 1), 0)
            x += width
        else:
            x, y = (start, float(command)) if kind == "M" else (x + start, y + float(command))
    return image


class TestPdf:
    def test_every_code_of_a_sheet_is_read_by_another_decoder(self) -> None:
        codes = [fixed_code(KEY, Ticket(7, serial, 1)) for serial in range(100, 107)]

        pages = sheets(render_tickets(OCCASION, [replace(TICKET, code=code) for code in codes]))

        assert len(pages) == 3
        assert set.union(*map(decoded, pages)) == set(codes)

    def test_the_ticket_names_event_place_time_seat_and_price(self) -> None:
        text = words(render_tickets(OCCASION, [TICKET]))

        for part in ("Crème Brûlée in Łódź", "Grand Hall", "Théâtre de l'Œuvre", "12 rue de Clichy"):
            assert part in text
        for part in ("Friday, 20 November 2026, 19:30 IST", "Row J, seat 12", "₹500.00", "ABCD2345"):
            assert part in text

    @pytest.mark.parametrize(
        ("locale", "parts"),
        [
            ("en_IN", ("Friday, 20 November 2026", "7:30 pm", "Row J, seat 12", "One person, once.")),
            ("de_DE", ("Freitag, 20. November 2026, 19:30", "Reihe J, Platz 12", "eine Person, einmal")),
            ("hi_IN", ("20", "2026, 7:30", "J", "12")),
        ],
    )
    def test_the_sheet_is_in_the_readers_language(self, locale: str, parts: tuple[str, ...]) -> None:
        text = " ".join(words(render_tickets(OCCASION, [TICKET], locale)).replace("\xa0", " ").split())

        assert [part for part in parts if part not in text] == []
        assert ("One person" in text) == (locale == "en_IN")

    def test_every_text_of_a_ticket_has_letters_in_the_packaged_fonts(self, tmp_path: Path) -> None:
        for locale in ("en_GB", "de_DE", "hi_IN"):
            texts = texts_for(locale)
            typeface = typeface_for([*texts.all, texts.when(OCCASION)], tmp_path)
            assert (locale, typeface.fallbacks, typeface.spelling) == (locale, (), {})

    @pytest.mark.parametrize("title", ["हिन्दी क्षत्रिय", "தமிழ் நாட்டு", "తెలుగు", "Война и мир", "Αθήνα"])
    def test_a_title_in_another_script_has_letters_to_be_printed_with(self, title: str) -> None:
        occasion = replace(OCCASION, title=title)

        typeface = typeface_for(texts_of(occasion, [TICKET], ENGLISH))
        image = sheets(render_tickets(occasion, [TICKET]))[0]

        assert typeface.spelling == {}
        assert decoded(image) == {CODE}

    def test_letters_join_as_their_script_wants(self) -> None:
        """क् + ष is one letter: shaped, the word is narrower than its parts side by side."""
        joined, apart = inked(replace(OCCASION, title="क्ष" * 6)), inked(replace(OCCASION, title="क ष" * 6))

        assert joined < apart * 0.8

    def test_a_script_no_font_has_is_spelt_or_marked_and_the_rest_is_right(self, tmp_path: object) -> None:
        occasion = replace(OCCASION, title="ﬁlm 漢字")

        pdf = render_tickets(occasion, [TICKET])

        assert "film" in words(pdf).lower()
        assert decoded(sheets(pdf)[0]) == {CODE}

    def test_a_show_without_paper_tickets_prints_a_note_and_no_code(self) -> None:
        pdf = render_tickets(OCCASION, [replace(TICKET, code=None)])

        assert decoded(sheets(pdf)[0]) == set()
        assert "show your ticket on your phone" in " ".join(words(pdf).split())

    def test_a_title_without_end_stays_in_its_frame(self) -> None:
        pdf = render_tickets(replace(OCCASION, title="Endless " * 20, venue="V" * 120), [TICKET] * 3)

        assert len(sheets(pdf)) == 1
        assert "…" in words(pdf)


def inked(occasion: TicketShow) -> int:
    """Width of the title in pixels."""
    title = sheets(render_tickets(occasion, [TICKET]))[0].convert("L").crop((100, 95, 720, 145))
    app = title.point(lambda shade: 255 if shade < 128 else 0).getbbox()
    assert app is not None
    return int(app[2] - app[0])


def test_the_first_font_has_every_letter_of_europe_and_of_hindi() -> None:
    typeface = typeface_for(["ÀÉÎÕÜßŒŁŠŽŐŰĞİŞțș", "अआइईउऊएकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह₹€"])

    assert (typeface.fallbacks, typeface.spelling) == ((), {})


def test_fonts_are_found_once() -> None:
    typeface_for(["Ж"])
    before = load_letters.cache_info().misses
    typeface_for(["Ж"])

    assert load_letters.cache_info().misses == before


def property_text(entry: Any, name: str) -> str:
    return str(entry[name].to_ical().decode())


class TestCalendar:
    def entry(self, **other: object) -> tuple[Calendar, dict[str, str]]:
        options = {"is_off": False, "now": STARTS_AT, **other}
        occasion = options.pop("occasion", OCCASION)
        seats = ["J-12", "J-13"]
        raw = calendar_file(occasion, NUMBER, seats, ENGLISH, **options)  # type: ignore[arg-type]
        calendar = Calendar.from_ical(raw)
        (event,) = calendar.walk("VEVENT")
        return calendar, {name: property_text(event, name) for name in event}

    def test_another_program_reads_when_and_where(self) -> None:
        calendar, entry = self.entry()

        assert calendar["METHOD"] == "PUBLISH"
        assert (entry["DTSTART"], entry["DTEND"]) == ("20261120T140000Z", "20261120T160000Z")
        assert entry["LOCATION"].startswith("Grand Hall\\, Théâtre de l'Œuvre")
        assert "J-12\\, J-13" in entry["DESCRIPTION"]

    def test_it_has_the_reference_that_buyers_know(self) -> None:
        _, entry = self.entry()

        assert reference(OCCASION.show_id, NUMBER) in entry["DESCRIPTION"]
        assert public_id(OCCASION.show_id, NUMBER) not in entry["DESCRIPTION"]

    def test_a_change_is_the_same_entry_with_a_higher_number(self) -> None:
        _, before = self.entry()
        _, after = self.entry(occasion=replace(OCCASION, revision=4))

        assert before["UID"] == after["UID"]
        assert int(before["SEQUENCE"]) < int(after["SEQUENCE"])

    def test_a_show_that_is_off_is_struck_out(self) -> None:
        calendar, entry = self.entry(is_off=True)

        assert (calendar["METHOD"], entry["STATUS"]) == ("CANCEL", "CANCELLED")


class TestPage:
    def test_the_code_is_in_the_page_itself(self) -> None:
        page = ticket_html(OCCASION, TICKET, Codes.FIXED, ENGLISH)

        assert svg(CODE) in page
        assert page.count("src=") == 1  # the script, without which it works as well

    def test_user_input_never_becomes_markup(self) -> None:
        evil = '<script>alert("x")</script>'
        occasion = replace(OCCASION, title=evil, venue=evil, hall=evil)

        page = ticket_html(occasion, replace(TICKET, section=evil), Codes.FIXED, ENGLISH)

        assert evil not in page
        assert page.count("&lt;script&gt;") >= 4

    @pytest.mark.parametrize(
        ("locale", "parts"),
        [
            ("en_IN", ("7:30\xa0pm", "Row J, seat 12", "brightness")),
            ("de_DE", ("Freitag, 20. November 2026, 19:30", "Reihe J, Platz 12", "Bereich", "Einlass")),
            ("hi_IN", ("शुक्रवार, 20 नवंबर 2026", "पंक्ति J, सीट 12", "सेक्शन", "स्क्रीन की चमक")),
        ],
    )
    def test_it_is_in_the_readers_language(self, locale: str, parts: tuple[str, ...]) -> None:
        page = ticket_html(OCCASION, TICKET, Codes.FIXED, texts_for(locale))

        assert [part for part in parts if part not in page] == []
        assert f'<html lang="{locale.replace("_", "-")}">' in page

    def test_every_language_has_the_same_texts(self) -> None:
        tables = [texts_for(language) for language in LANGUAGES]
        assert {len(table.all) for table in tables} == {len(ENGLISH.all)}
        assert all(table[name] for table in tables for name in (*Standing, "terms", "live", "trait_w"))

    def test_a_void_ticket_says_so(self) -> None:
        void = replace(TICKET, worth=Standing.VOID, code=None)

        assert "no longer valid" in ticket_html(OCCASION, void, Codes.FIXED, ENGLISH)

    def test_the_policy_allows_own_content_only(self) -> None:
        assert "unsafe" not in policy(STYLE)
        assert "default-src 'none'" in policy(STYLE)
        assert policy(STYLE) != policy(STYLE + " ")

    def test_the_page_shell_contains_every_placeholder(self) -> None:
        assert isinstance(SHELL, Template)
        assert "$" not in ticket_html(OCCASION, TICKET, Codes.LIVE, ENGLISH)
