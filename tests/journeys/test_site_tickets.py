"""Tickets in a browser without scripts: shown, printed, sent, given away, returned; all bookings."""

import re
from collections.abc import Callable
from typing import Any

from holdfast.app import App
from holdfast.config import Config
from holdfast.pricing import RefundPolicy, RefundStep, Terms
from holdfast.tickets import Codes, EntryPolicy
from tests.support.browser_session import ANN, Visitor, a_site, a_visitor, booking_key
from tests.support.cuttable_link import a_line
from tests.support.html_page import reading
from tests.support.mailed_links import prove_address
from tests.support.pdf import words_on
from tests.support.wait import until

HALF = Terms(
    fee_minor=100, refund_policy=RefundPolicy(steps=(RefundStep(hours_before=1, percent=50),), keep_fee=True)
)
NOTHING = Terms(refund_policy=RefundPolicy(steps=()))


async def has_bought(ann: Visitor, show: int, *seats: str) -> str:
    path = await ann.holds(show, *seats)
    await ann.pays(**ANN)
    assert ann.says("Your "), ann.text
    return path


async def has_account(visitor: Visitor, email: str) -> None:
    form = {"email": email, "password": "correct horse battery staple", "name": "Eve"}
    answer = await visitor.client.post("/sign-up", data=form)
    assert answer.status_code == 303, answer.text


async def test_tickets_are_printed_put_into_a_calendar_and_invoiced(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await has_bought(ann, await a_show(seats=10), "A-1", "A-2")
    for file, kind, begins in (
        ("tickets.pdf", "application/pdf", b"%PDF"),
        ("calendar.ics", "text/calendar", b"BEGIN:VCALENDAR"),
        ("invoice.pdf", "application/pdf", b"%PDF"),
    ):
        assert f'href="{path}/{file}"' in ann.text
        answer = await ann.client.get(f"{path}/{file}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert answer.content.startswith(begins)
        assert answer.headers["cache-control"] == "no-store"


async def test_a_ticket_whose_payment_is_disputed_says_so_and_why(
    app: App, ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await has_bought(ann, await a_show(seats=10), "A-1")
    (link,) = re.findall(r'href="(/tickets/[^"]+)"', ann.text)
    await app.postgres.execute("SELECT suspend_tickets($1, $2, true)", *booking_key(path))
    for language, stamp, why in (
        ("en", "Suspended", "was disputed with your bank"),
        ("de", "Gesperrt", "bei deiner Bank oder Kartenfirma widersprochen"),
        ("hi", "रोका गया", "बैंक या कार्ड कंपनी के यहाँ विवाद"),
    ):
        ann.client.headers["accept-language"] = language
        await ann.goes(path)
        assert f'<p class="stamp">{stamp}</p>' in ann.text
        assert ann.says(why)
        assert "/tickets/" not in ann.text
        assert stamp in (await ann.client.get(link)).text

    ann.client.headers["accept-language"] = "en"
    await app.postgres.execute("SELECT suspend_tickets($1, $2, false)", *booking_key(path))
    await ann.goes(path)
    assert not ann.says("Suspended")
    assert link.rpartition("/")[2] in ann.text


async def test_each_ticket_has_a_page_of_its_own_and_the_mail_is_sent_again(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await has_bought(ann, await a_show(seats=10), "A-1", "A-2")
    links = re.findall(r'href="(/tickets/[^"]+)"', ann.text)
    assert len(links) == 2
    assert (await ann.client.get(links[0])).status_code == 200

    await ann.sends("/resend")
    assert ann.says("We've sent the email again.")
    for _ in range(5):
        await ann.sends("/resend")
    assert ann.status == 429
    assert ann.says("Check your spam folder")
    assert (await ann.goes(path)).status == 200


async def test_the_ticket_page_and_its_pdf_are_in_the_chosen_language(
    ann: Visitor, a_show: Callable[..., Any]
) -> None:
    path = await has_bought(ann, await a_show(seats=10), "A-1")
    (link,) = set(re.findall(r'href="(/tickets/[^"]+)"', ann.text))
    await ann.client.post("/language", data={"language": "de"})

    page = await ann.client.get(link)
    paper = await ann.client.get(f"{path}/tickets.pdf")
    calendar = await ann.client.get(f"{path}/calendar.ics")

    assert '<html lang="de-DE">' in page.text
    assert "Reihe A, Platz 1" in page.text
    assert "Gültig für eine Person, einmal." in words_on(paper.content)
    assert "Plätze: A-1" in calendar.text


async def test_a_live_code_is_not_on_this_page(ann: Visitor, app: App, a_show: Callable[..., Any]) -> None:
    show = await a_show(seats=10)
    await app.tickets.set_door(show, EntryPolicy(codes=Codes.LIVE))
    await has_bought(ann, show, "A-1")
    assert ann.says("works on one phone only")
    assert 'class="qr"' not in ann.text


async def test_a_ticket_is_given_away_and_taken_back(ann: Visitor, a_show: Callable[..., Any]) -> None:
    path = await has_bought(ann, await a_show(seats=10), "A-1")
    before = re.findall(r'href="(/tickets/[^"]+)"', ann.text)[0]

    await ann.sends("/transfer", email="not an address")
    assert ann.status == 422
    assert ann.says("Please enter a valid email address")
    await ann.sends("/transfer", email="friend-of-ann@example.org")
    assert ann.says("Ticket sent.")
    assert ann.says("Waiting for friend-of-ann@example.org to accept.")
    assert '<p class="stamp">Sent</p>' in ann.text
    assert 'class="qr"' not in ann.text
    assert (await ann.client.get(before)).status_code == 404

    await ann.sends("/take-back")
    assert ann.says("Transfer cancelled")
    assert 'class="qr"' in ann.text
    assert (await ann.goes(path)).text.count("data-keep") == 1


async def test_a_received_ticket_is_listed_for_its_new_holder(
    app: App, ann: Visitor, eve: Visitor, a_show: Callable[..., Any]
) -> None:
    await has_account(eve, "eve-has-it@example.org")
    await prove_address(app.postgres, "eve-has-it@example.org")
    await has_bought(ann, await a_show(seats=10), "A-7")
    await ann.sends("/transfer", email="eve-has-it@example.org")

    await eve.goes("/my")
    await eve.sends("/my/accept")
    await eve.goes("/my")

    assert eve.says("Received")
    assert eve.says("A-7")
    (link,) = set(re.findall(r'href="(/tickets/[^"]+)"', eve.text))
    assert (await eve.client.get(link)).status_code == 200


class TestGivingBack:
    async def test_the_refund_matches_the_amount_shown_before(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10, price_minor=1500, sold_on=HALF), "A-1", "A-2")

        await ann.goes(f"{path}/cancel")
        assert ann.says("€14"), "half of 1400 each: the fee stays"
        assert ann.says("of €30")
        assert ann.says("50% of the price")
        assert ann.says("The service fee is not refunded.")
        await ann.goes(f"{path}/cancel?seats=A-2&step=review")
        assert ann.says("€7")
        assert ann.says("of €15")

        await ann.sends("/cancel")  # the form as it is: A-2 alone
        assert ann.says("Refund requested. The rest of your booking stays valid.")
        assert ann.text.count('class="qr"') == 1

        await ann.goes(f"{path}/cancel")
        await ann.sends("/cancel")
        assert ann.says("Tickets refunded")
        assert ann.text.count("Refund requested") == 2
        assert ann.says("€7")

    async def test_unticking_a_ticket_refunds_the_ticked_one_alone(
        self, ann: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10, price_minor=1500), "A-1", "A-2")
        await ann.goes(f"{path}/cancel")
        assert ann.says("Review refund"), "without scripts the amount of the ticked ones is not known yet"
        (red,) = reading(ann.text).all("button", name="quote")
        assert {"disabled", "hidden"} <= red.keys(), "no button that refunds before the review"

        await ann.goes(f"{path}/cancel?seats=A-2&step=review")
        assert ann.says("Refund 1 ticket (A-2), get €15")
        await ann.sends("/cancel")

        assert ann.text.count('class="qr"') == 1
        booking = await app.bookings.booking(*booking_key(path))
        assert booking is not None
        assert (booking.state, booking.seats) == ("confirmed", (0,))

    async def test_a_form_whose_quote_is_of_other_tickets_refunds_nothing_and_shows_the_right_quote(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        """A tick that changed after the quote: same price or not, the buyer has not seen this refund."""
        path = await has_bought(ann, await a_show(seats=10, price_minor=1500), "A-1", "A-2", "A-3")
        for before, ticked in (("seats=A-1", ["A-2"]), ("seats=A-1&seats=A-2", ["A-2"])):
            await ann.goes(f"{path}/cancel?{before}&step=review")
            await ann.sends("/cancel", seats=ticked)
            assert ann.says("Please check the new amount")
            assert ann.says("Refund 1 ticket (A-2), get €15")

        await ann.sends("/cancel", seats=[])
        assert ann.says("Choose at least one ticket.")
        assert (await ann.goes(path)).text.count('class="qr"') == 3

    async def test_a_transferred_ticket_cannot_be_chosen_for_a_refund(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10, price_minor=1500), "A-1", "A-2")
        await ann.sends("/transfer", email="friend-of-ann@example.org")

        await ann.goes(f"{path}/cancel")

        (tick,) = reading(ann.text).all("input", value="A-1")
        assert "disabled" in tick
        assert "checked" not in tick
        assert ann.says("Cancel the transfer first")
        assert ann.says("€15"), "the quote is for A-2 alone"

    async def test_a_booking_without_a_refund_says_so_and_has_no_button(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10, sold_on=NOTHING), "A-1")
        await ann.goes(f"{path}/cancel")
        assert ann.says("no longer refundable")
        assert "<button" not in ann.text.partition('id="quote"')[2].partition("</section>")[0]

        answer = await ann.client.post(f"{path}/cancel", data={"seats": ["A-1"]})
        assert answer.status_code == 409
        assert (await ann.goes(path)).says("Your ticket")

    async def test_another_buyers_seats_cannot_be_returned(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10), "A-1")
        assert (await ann.goes(f"{path}/cancel?seats=A-9")).status == 422
        answer = await ann.client.post(f"{path}/cancel", data={"seats": ["A-9"]})
        assert answer.status_code == 422
        assert (await ann.goes(path)).says("Your ticket")

    async def test_a_part_that_finds_the_ledger_away_is_sent_again_as_a_part(
        self, config: Config, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(seats=10)
        async with a_line(config) as line, a_site(line.config) as site, a_visitor(site) as ann:
            path = await has_bought(ann, show, "A-1", "A-2")
            await ann.goes(f"{path}/cancel?seats=A-2&step=review")
            line.cut()
            await ann.sends("/cancel")
            assert ann.status == 503
            assert re.findall(r'name="seats" value="([^"]+)"', ann.text) == ["A-2"]

    async def test_the_page_shows_that_the_show_is_cancelled(
        self, ann: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        show = await a_show(seats=10)
        path = await has_bought(ann, show, "A-1")
        await app.postgres.execute("UPDATE show SET cancelled = true WHERE id = $1", show)

        async def is_shown() -> bool:
            await ann.goes(path)
            return bool(ann.says("This show has been cancelled"))

        await until(is_shown)  # show data may be cached for one second
        assert ann.says("You'll get a full refund")


class TestMine:
    async def test_an_account_without_bookings_is_shown_how_to_buy(self, ann: Visitor) -> None:
        await ann.goes("/my")
        assert ann.status == 200
        assert ann.says("No tickets yet")
        assert 'href="/sign-in?back=/my"' in ann.text

    async def test_open_bookings_come_before_upcoming_and_past_ones(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        over = await ann.holds(await a_show(seats=10), "A-1")
        await ann.sends("/release")
        coming = await has_bought(ann, await a_show(seats=10), "A-1")
        waiting = await ann.holds(await a_show(seats=10), "A-1")

        await ann.goes("/my")

        assert ann.text.index(waiting) < ann.text.index(coming) < ann.text.index(over)
        assert ann.says("Saved in this browser only")
        assert 'href="/sign-up?back=/my"' in ann.text

    async def test_refunded_and_released_bookings_of_a_coming_show_are_not_past(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        released = await ann.holds(await a_show(seats=10), "A-1")
        await ann.sends("/release")

        await ann.goes("/my")
        assert released in ann.text
        assert ann.says("1 refunded or expired booking")
        assert 'id="past"' not in ann.text

    async def test_a_guest_that_creates_an_account_retains_all_bookings(
        self, ann: Visitor, app: App, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10), "A-1")
        await has_account(ann, "ann-signs-up@example.org")

        await ann.goes("/my")
        assert path in ann.text
        assert not ann.says("Saved in this browser only")
        assert ann.says("ann-signs-up@example.org")
        assert 'action="/sign-out"' in ann.text
        await ann.goes(path)
        assert 'class="qr"' in ann.text
        assert (await app.bookings.booking(*booking_key(path))) is not None

    async def test_signing_out_clears_the_browsers_cached_pages(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        path = await has_bought(ann, await a_show(seats=10), "A-1")
        await has_account(ann, "ann-signs-out@example.org")
        answer = await ann.client.post("/sign-out")
        assert '"storage"' in answer.headers["clear-site-data"]
        assert (await ann.client.get(path)).headers["location"].startswith("/sign-in")
        assert (await ann.goes("/my")).says("No tickets yet")

    async def test_only_pages_without_a_hold_are_marked_for_offline_use(
        self, ann: Visitor, a_show: Callable[..., Any]
    ) -> None:
        await ann.holds(await a_show(seats=10), "A-1")
        assert "holdfast-offline" not in ann.headers
        await ann.pays(**ANN)
        assert ann.headers["holdfast-offline"] == "keep"
        assert (await ann.goes("/my")).headers["holdfast-offline"] == "keep"
