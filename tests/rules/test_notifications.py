"""Which fact becomes which notice, in which words, as which mail (R29)."""

import html
import io
import re
import string
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, get_args, get_type_hints
from zoneinfo import ZoneInfo

import pytest
import zxingcpp
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from holdfast.accounts import LANGUAGES
from holdfast.accounts.account import choose_language
from holdfast.accounts.api import LocaleBody
from holdfast.notifications.message_data import load_templates, sample_html, sample_message
from holdfast.notifications.notice import (
    CONSUMED_KINDS,
    PAUSES_S,
    SHOW_FACTS,
    URGENT,
    Channel,
    NoticeKind,
    build_notice,
    channels_for,
)
from holdfast.notifications.render import (
    ComposedMessage,
    MailHeaders,
    SeatName,
    build_mail,
    build_message_id,
    compose_message,
    format_moment,
    leaf_parts,
    render_text,
    to_one_line,
)
from holdfast.notifications.sample_data import SAMPLE
from holdfast.outbox import (
    KINDS,
    Body,
    BookingConfirmed,
    BookingExpired,
    Fact,
    PaymentDeclined,
    PaymentLate,
    RefundDone,
    TicketsSentAgain,
    TicketTakenBack,
    TicketTransferred,
)

AT = datetime(2026, 11, 20, 18, 30, tzinfo=UTC)
BOOKING: dict[str, Any] = {"owner_id": 5, "seats": (1, 2), "prices_minor": (700, 800), "amount_minor": 1500}
MONEY: dict[str, Any] = {"attempt": 1, "amount_minor": 1500, "currency": "EUR", "owner_id": 5}
GIFT: dict[str, Any] = {"serial": 9, "edition": 2, "from_id": 5, "owner_id": 5}


def a_fact(body: Body) -> Fact:
    return Fact(id=77, kind=body.KIND, version=1, at=AT, show_id=3, number=4, body=body)


class TestFacts:
    @pytest.mark.parametrize(
        ("body", "kind", "account_id"),
        [
            (BookingConfirmed(**BOOKING, currency="EUR"), NoticeKind.TICKETS, 5),
            (BookingExpired(**BOOKING, currency="EUR"), NoticeKind.HOLD_LAPSED, 5),
            (PaymentDeclined(**MONEY), NoticeKind.DECLINED, 5),
            (PaymentLate(**MONEY, booked=True), NoticeKind.LATE_BOOKED, 5),
            (PaymentLate(**MONEY, booked=False), NoticeKind.LATE_REFUNDED, 5),
            (RefundDone(**MONEY, refund=1), NoticeKind.REFUNDED, 5),
            (TicketsSentAgain(account_id=6, owner_id=5), NoticeKind.TICKETS, 6),
            (TicketTransferred(**GIFT, side="given", to_id=8), NoticeKind.TICKET_GIVEN, 5),
            (TicketTransferred(**GIFT, side="got", to_id=8), NoticeKind.TICKET_GOT, 8),
            (TicketTransferred(**GIFT, side="got"), NoticeKind.TICKET_GOT, None),
            (TicketTakenBack(serial=9, edition=3, to_id=5), NoticeKind.TICKET_TAKEN_BACK, None),
        ],
    )
    def test_the_affected_account_is_notified(
        self, body: Body, kind: NoticeKind, account_id: int | None
    ) -> None:
        notice = build_notice(a_fact(body))

        assert notice is not None
        assert (notice.kind, notice.account_id, notice.fact_id) == (kind, account_id, 77)
        assert (notice.show_id, notice.number) == (3, 4)

    def test_seats_an_organiser_blocks_send_no_notice(self) -> None:
        for body in (BookingConfirmed, BookingExpired):
            assert build_notice(a_fact(body(**BOOKING, currency="EUR", is_block=True))) is None

    def test_money_without_an_owner_sends_no_notice(self) -> None:
        for body in (PaymentDeclined, PaymentLate):
            assert build_notice(a_fact(body(**{**MONEY, "owner_id": None}))) is None

    def test_a_gift_notice_names_the_transferred_ticket_and_edition(self) -> None:
        notice = build_notice(a_fact(TicketTransferred(**GIFT, side="got")))

        assert notice is not None
        assert (notice.serial, notice.edition) == (9, 2)

    def test_every_subscribed_fact_exists_and_every_kind_has_a_text(self) -> None:
        assert set(CONSUMED_KINDS) <= KINDS.keys()
        assert {body.KIND for body in SHOW_FACTS} <= set(CONSUMED_KINDS)  # type: ignore[attr-defined]
        for words in load_templates().words.values():
            assert words.keys() - {"common"} == set(NoticeKind)

    def test_only_urgent_notices_are_sent_to_phones(self) -> None:
        there = [Channel.MAIL, Channel.SMS, Channel.PUSH]

        assert channels_for(NoticeKind.HOLD_LAPSING, there) == there
        assert channels_for(NoticeKind.REFUNDED, there) == [Channel.MAIL]
        assert NoticeKind.TICKETS in URGENT

    def test_pauses_grow(self) -> None:
        assert list(PAUSES_S) == sorted(PAUSES_S)


def words_in(table: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every sentence of a table and where it is, its forms for numbers as one."""
    match table:
        case str():
            yield path, table
        case {"other": _, **_rest}:
            yield path, " ".join(table.values())
        case dict():
            for name, inside in table.items():
                yield from words_in(inside, f"{path}.{name}")
        case list():
            for number, inside in enumerate(table):
                yield from words_in(inside, f"{path}.{number}")


def names_in(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


class TestWords:
    def test_languages_are_those_that_people_may_choose(self) -> None:
        assert get_args(get_type_hints(LocaleBody)["locale"]) == LANGUAGES
        assert tuple(load_templates().words) == LANGUAGES

    @pytest.mark.parametrize("locale", LANGUAGES[1:])
    def test_every_language_has_the_texts_of_english(self, locale: str) -> None:
        english, other = (
            dict(words_in(load_templates().words["en"])),
            dict(words_in(load_templates().words[locale])),
        )

        assert other.keys() == english.keys()
        for path, sentence in english.items():
            assert names_in(other[path]) - {"count"} == names_in(sentence) - {"count"}, path

    @pytest.mark.parametrize("locale", LANGUAGES)
    @pytest.mark.parametrize("kind", NoticeKind)
    def test_every_letter_can_be_written(self, kind: NoticeKind, locale: str) -> None:
        letter = sample_message(kind, locale, load_templates())
        text, page = render_text(letter, load_templates()), sample_html(letter, load_templates())

        for expected in (letter.subject, letter.heading, *letter.lines):
            assert "{" not in expected
            assert expected.strip()
        for line in letter.lines:
            assert line in text
        assert f'<html lang="{locale}">' in page
        assert "http" not in page, "nothing is loaded from elsewhere"
        assert "<table" not in page

    @pytest.mark.parametrize(
        ("locale", "count", "subject"),
        [
            ("en", 1, "Your ticket for Crème Brûlée"),
            ("en", 2, "Your 2 tickets for Crème Brûlée"),
            ("de", 1, "Dein Ticket für Crème Brûlée"),
            ("hi", 1, "Crème Brûlée का आपका टिकट"),
            ("hi", 2, "Crème Brûlée के आपके 2 टिकट"),
        ],
    )
    def test_numbers_have_their_forms(self, locale: str, count: int, subject: str) -> None:
        contents = replace(SAMPLE, seats=SAMPLE.seats[:count])

        assert compose_message(NoticeKind.TICKETS, contents, locale, load_templates()).subject == subject

    @pytest.mark.parametrize(
        ("locale", "name"),
        [("en", "standing"), ("de", "Stehplatz"), ("hi", "खड़े होकर")],
    )
    def test_a_place_to_stand_has_no_number(self, locale: str, name: str) -> None:
        contents = replace(SAMPLE, seats=[SeatName("Gallery", "", "7171")], stubs=[])

        letter = compose_message(NoticeKind.TICKETS, contents, locale, load_templates())

        text = render_text(letter, load_templates())
        assert f"Gallery, {name}" in text
        assert "7171" not in text

    def test_a_language_we_do_not_write_is_english(self) -> None:
        assert compose_message(NoticeKind.TICKETS, SAMPLE, "tlh", load_templates()).locale == "en"

    @pytest.mark.parametrize(
        ("locale", "expected"),
        [
            ("en", "Friday, 20 November 2026, 19:30 (Central European Standard Time)"),
            ("de", "Freitag, 20. November 2026, 19:30 (Mitteleuropäische Normalzeit)"),
            ("hi", "शुक्रवार, 20 नवंबर 2026, 19:30 (मध्य यूरोपीय मानक समय)"),
        ],
    )
    def test_a_time_is_the_venues_and_spelt_in_the_readers_language(self, locale: str, expected: str) -> None:
        assert format_moment(AT, ZoneInfo("Europe/Berlin"), locale) == expected

    @pytest.mark.parametrize(("locale", "zone"), [("en", "India Time"), ("hi", "भारत समय")])
    def test_a_zone_has_a_name_and_not_an_offset(self, locale: str, zone: str) -> None:
        assert format_moment(AT, ZoneInfo("Asia/Kolkata"), locale).endswith(f"00:00 ({zone})")
        assert format_moment(AT, ZoneInfo("Asia/Kolkata"), "de").endswith("00:00, Indien (Ortszeit)")

    @pytest.mark.parametrize("locale", LANGUAGES)
    @pytest.mark.parametrize("kind", NoticeKind)
    def test_the_text_says_all_that_the_page_says(self, kind: NoticeKind, locale: str) -> None:
        letter = sample_message(kind, locale, load_templates())
        page = sample_html(letter, load_templates()).partition("<body>")[2]
        shown = [html.unescape(text).strip() for text in re.findall(r">([^<>]+)<", page)]
        addresses = re.findall(r'href="([^"]+)"', page)

        text = render_text(letter, load_templates())

        for expected in [*filter(None, shown), *addresses]:
            assert expected in text

    @pytest.mark.parametrize(
        ("kind", "word", "path"),
        [
            (NoticeKind.HOLD_LAPSING, "Pay now", "/bookings/sample"),
            (NoticeKind.HOLD_LAPSED, "Choose seats", "/shows/0"),
            (NoticeKind.SHOW_CHANGED, "See your booking", "/bookings/sample"),
        ],
    )
    def test_a_mail_links_to_the_page_for_the_next_step(self, kind: NoticeKind, word: str, path: str) -> None:
        here = compose_message(kind, replace(SAMPLE, base="https://hall.example"), "en", load_templates())
        nowhere = compose_message(kind, replace(SAMPLE, base=None), "en", load_templates())

        assert (here.link_word, here.link) == (word, f"https://hall.example{path}")
        assert (nowhere.link_word, nowhere.link) == ("", "")

    @pytest.mark.parametrize(
        ("locale", "expected"), [("en", "₹1,250.00"), ("de", "1.250,00 ₹"), ("hi", "₹1,250.00")]
    )
    def test_an_amount_is_written_as_the_reader_writes_it(self, locale: str, expected: str) -> None:
        letter = compose_message(NoticeKind.REFUNDED, SAMPLE, locale, load_templates())

        assert to_one_line(expected) in to_one_line(letter.subject)

    def test_a_recipient_gets_a_link_to_the_ticket_and_no_code(self) -> None:
        contents = replace(SAMPLE, base="https://hall.example")
        waiting = compose_message(NoticeKind.TICKET_GOT, contents, "en", load_templates())

        assert waiting.lines[0].startswith("bob@example.org sent you a ticket")
        assert (waiting.link_word, waiting.link) == ("Accept ticket", "https://hall.example/link/sample")
        assert not waiting.stubs

    def test_after_the_deadline_the_mail_does_not_suggest_another_try(self) -> None:
        over = compose_message(NoticeKind.DECLINED, replace(SAMPLE, until=None), "en", load_templates())

        assert "time to pay has run out" in over.lines[0]


class TestRequestedLanguage:
    @pytest.mark.parametrize(
        ("header", "locale"),
        [
            (None, "en"),
            ("", "en"),
            ("de", "de"),
            ("hi-IN,en;q=0.8", "hi"),
            ("en;q=0.5, de-AT;q=0.7", "de"),
            ("fr, it;q=0.9, hi;q=0.1", "hi"),
            ("fr", "en"),
            ("de;q=0", "en"),
            ("de;q=much, hi;q=0.2", "hi"),
            ("*", "en"),
        ],
    )
    def test_the_best_supported_language_is_chosen(self, header: str | None, locale: str) -> None:
        assert choose_language(header) == locale

    @given(st.text(max_size=200))
    def test_any_header_yields_a_supported_language(self, header: str) -> None:
        assert choose_language(header) in LANGUAGES


def envelope(**other: Any) -> MailHeaders:
    usual: dict[str, Any] = {
        "message_id": build_message_id(7, AT, 1, "tickets@hall.example"),
        "sent_at": AT,
        "from_name": "Hall",
        "from_address": "tickets@hall.example",
        "to_name": "Zoë",
        "to_address": "zoe@example.org",
    }
    return MailHeaders(**usual | other)


def received(letter: ComposedMessage, wrapped: MailHeaders) -> EmailMessage:
    """As a stranger's program reads it."""
    raw = build_mail(letter, wrapped, load_templates()).as_bytes()
    raw.decode("ascii")
    assert all(len(line) <= 998 for line in raw.split(b"\r\n"))
    message = message_from_bytes(raw, policy=default)
    assert isinstance(message, EmailMessage)
    return message


def the_letter(kind: NoticeKind = NoticeKind.TICKETS, locale: str = "en", **other: Any) -> ComposedMessage:
    base = replace(SAMPLE, **other)
    if kind is NoticeKind.TICKETS:
        base = replace(base, stubs=[])
    return compose_message(kind, base, locale, load_templates())


class TestMail:
    def test_a_mail_has_text_html_and_readable_ticket_codes(self) -> None:
        message = received(sample_message(NoticeKind.TICKETS, "hi", load_templates()), envelope())

        assert [part.get_content_type() for part in message.walk()] == [
            *("multipart/alternative", "text/plain", "multipart/related", "text/html"),
            *("image/png", "image/png"),
        ]
        page = message.get_body(("html",))
        assert page is not None
        ids = re.findall(r'src="cid:([^"]+)"', page.get_content())
        pictures = {
            str(one["Content-ID"]).strip("<>"): one for one in leaf_parts(message) if one["Content-ID"]
        }
        assert set(ids) == pictures.keys()
        picture = Image.open(io.BytesIO(pictures[ids[0]].get_content()))
        assert [one.text for one in zxingcpp.read_barcodes(picture)] == ["a sample: it opens no door"]

    def test_mail_suppresses_auto_replies_and_offers_no_unsubscribe(self) -> None:
        message = received(the_letter(), envelope())

        assert message["Auto-Submitted"] == "auto-generated"
        assert message["List-Unsubscribe"] is None
        assert message["Content-Language"] == "en"

    @pytest.mark.parametrize("name", ["Zoë Łukasiewicz", "ज़ोया कुमार", 'A, "B" <c@d.example>', "x" * 300])
    def test_names_arrive_unchanged_or_without_address_characters(self, name: str) -> None:
        message = received(the_letter(name=name), envelope(to_name=name, from_name=name))

        (to,) = message["To"].addresses
        assert to.addr_spec == "zoe@example.org"
        assert to.display_name == " ".join(re.sub(r'[",<>@.]', " ", name).split())[:80]
        assert [one.addr_spec for one in message["From"].addresses] == ["tickets@hall.example"]

    @given(st.text(min_size=1, max_size=120), st.text(max_size=120))
    def test_no_title_and_no_name_can_begin_a_header_or_an_address(self, title: str, name: str) -> None:
        hostile = f"{title}\r\nBcc: all@example.org\n\n<script>"

        message = received(
            the_letter(title=hostile, name=name),
            envelope(to_name=name, from_name=hostile, reply_to="a@b.example"),
        )

        assert "Bcc" not in message
        assert [one.addr_spec for one in message["To"].addresses] == ["zoe@example.org"]
        assert [one.addr_spec for one in message["From"].addresses] == ["tickets@hall.example"]
        assert [one.addr_spec for one in message["Reply-To"].addresses] == ["a@b.example"]
        assert not message.defects

    def test_user_input_is_escaped(self) -> None:
        letter = the_letter(title="<img src=x onerror=alert(1)>", name="</style><script>alert(2)</script>")

        page = received(letter, envelope()).get_body(("html",))

        assert page is not None
        text = page.get_content()
        assert "<script>" not in text
        assert "<img" not in text
        assert "&lt;img src=x onerror=alert(1)&gt;" in text

    def test_a_title_that_looks_like_a_template_is_only_a_title(self) -> None:
        letter = the_letter(title="{name} {{ letter.foot }} {0.__class__}")

        assert letter.heading == "{name} {{ letter.foot }} {0.__class__}"

    def test_the_same_notice_is_the_same_mail_and_a_new_round_is_another(self) -> None:
        first, again = (received(the_letter(), envelope()) for _ in range(2))

        assert first["Message-ID"] == again["Message-ID"] == "<notice.7.20261120183000@hall.example>"
        assert first["Date"] == again["Date"]
        assert build_message_id(7, AT, 2, "tickets@hall.example") != first["Message-ID"]
