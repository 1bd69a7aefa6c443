"""Pages for fans beside the seat map: browsing, free shows, checkout, tickets, mails."""

from tools.defects.mutant import undo

SITE = "src/holdfast/site"
TEMPLATES = f"{SITE}/templates"
CHECKOUT = "tests/journeys/test_site_checkout.py"
TICKETS = "tests/journeys/test_site_tickets.py"
FIND = "tests/journeys/test_site_find.py"
TWO_HOLDS = "tests/journeys/test_site_two_holds.py"

MUTANTS = (
    undo(
        "every page of a held booking reads the terms for itself",
        f"{TWO_HOLDS} -k share_their_statements",
        (
            "src/holdfast/legal/store.py",
            "        return self._look(show_id)\n",
            "        async def alone() -> TermsInForce:\n"
            "            return (await self._terms_of_shows([show_id]))[0]\n\n"
            "        return asyncio.ensure_future(alone())\n",
        ),
    ),
    undo(
        "pages do not show the posters of organisers",
        "tests/journeys/test_posters.py",
        (
            "src/holdfast/catalogue/event.py",
            '    return poster if poster.startswith("/posters/") else f"/posters/{event_id}.svg"\n',
            '    return f"/posters/{event_id}.svg"\n',
        ),
    ),
    undo(
        "free tickets are booked by the first click",
        "tests/journeys/test_site_free.py -k gives_an_address",
        (f"{SITE}/seat_form.py", "        confirms_free=False,", "        confirms_free=True,"),
    ),
    undo(
        "the from price is that of a category that is sold out",
        "tests/journeys/test_from_price.py",
        (
            "src/holdfast/search/index.py",
            '        return cheapest_price(row, free or row["categories"])\n',
            '        return cheapest_price(row, row["categories"])\n',
        ),
    ),
    undo(
        "a sold-out event has a price",
        "tests/journeys/test_from_price.py -k sold_out",
        (
            "src/holdfast/search/index.py",
            '        if taken >= row["seats"]:\n            return None\n',
            "",
        ),
    ),
    undo(
        "the ticket page is English for every reader",
        f"{TICKETS} tests/journeys/test_tickets.py tests/rules/test_ticket_pictures.py -k language",
        (
            "src/holdfast/tickets/mobile_page_api.py",
            "    texts = texts_for(locale_for(request.state.headers))\n",
            '    texts = texts_for("en")\n',
        ),
    ),
    undo(
        "the ticket PDF is English for every reader",
        "tests/rules/test_ticket_pictures.py -k readers_language",
        (
            "src/holdfast/tickets/texts.py",
            "format_date(local, 'full', self.locale)",
            "f'{local:%A %d %B %Y}'",
        ),
    ),
    undo(
        "going back and reserving again says nothing of the first hold",
        f"{TWO_HOLDS} -k two_holds",
        (
            f"{TEMPLATES}/checkout/held.html",
            "{% for other in view.other_holds %}\n",
            "{% for other in [] %}\n",
        ),
    ),
    undo(
        "a given-away ticket can be ticked for a refund",
        f"{TICKETS} -k transferred_ticket",
        (
            f"{SITE}/booking_view.py",
            '        good = {one.printed.seat for one in self.tickets if one.standing == "good"}\n',
            "        good = {one.printed.seat for one in self.tickets}\n",
        ),
    ),
    undo(
        "a payment that the bank processes looks like one that was not made",
        f"{CHECKOUT} -k bank_processes",
        (
            "src/holdfast/payments/saga_runner.py",
            '            known |= {"action_url": None, "client_secret": None}\n',
            "            pass\n",
        ),
        (
            "src/holdfast/payments/store.py",
            "charge.is_processing",
            "False",
        ),
    ),
    undo(
        "a released hold is shown as expired above as released",
        f"{CHECKOUT} -k shown_as_released_alone",
        (
            f"{SITE}/booking_page.py",
            '    if isinstance(refusal, HoldGone) and not details.get("alternatives"):\n',
            "    if False:\n",
        ),
    ),
    undo(
        "after cancelling a payment, “not charged” appears twice",
        f"{CHECKOUT} -k resume_or_cancel",
        (
            f"{SITE}/locales/en/LC_MESSAGES/messages.po",
            'msgid "checkout.not_called_off"\nmsgstr "Payment cancelled."\n',
            'msgid "checkout.not_called_off"\nmsgstr "Payment cancelled. You haven\'t been charged."\n',
        ),
    ),
    undo(
        "a mistake in a filter throws the search away",
        f"{FIND} -k mistake_in_a_filter",
        (
            f"{SITE}/search_page.py",
            "            form = form.without(field)\n        else:\n            return form\n",
            "            raise\n        else:\n            return form\n",
        ),
    ),
    undo(
        "an unknown postcode throws the search away",
        f"{FIND} -k mistake_in_a_filter",
        (
            f"{SITE}/search_page.py",
            "        except (NoSuchCity, NoSuchPostalCode) as refusal:\n",
            "        except NoSuchCity as refusal:\n",
        ),
    ),
    undo(
        "a page of results that does not exist is an error",
        f"{FIND} -k page_that_does_not_exist",
        (
            f"{SITE}/search_page.py",
            '            form = form.without("page")\n',
            "            return form, page\n",
        ),
    ),
    undo(
        "suggestions forgive no typo",
        "tests/journeys/test_search.py -k suggestions_forgive",
        (
            "src/holdfast/search/api.py",
            "        return await _load_corrected_suggestions(app, tuple(words), size)\n",
            "        return _no_suggestions()\n",
        ),
    ),
    undo(
        "paying without a network shows the browser's own error",
        "tests/browser/test_checkout.py -k paying_without_a_network",
        (
            f"{SITE}/static/js/checkout_send.js",
            "    event.preventDefault();\n    send(form, event.submitter);\n",
            "",
        ),
    ),
    undo(
        "an installed app that starts offline shows the browser's own error",
        "tests/browser/test_checkout.py -k open_without_a_network",
        (
            f"{SITE}/static/js/checkout_worker.js",
            'request.mode === "navigate" && pathname === START) event',
            "false) event",
        ),
    ),
    undo(
        "the way to a venue is a link that computers do not open",
        "tests/journeys/test_site_browse.py -k venue_page_shows",
        (
            f"{TEMPLATES}/browse/venue.html",
            "https://www.google.com/maps/search/?api=1&amp;query={{ venue.lat }},{{ venue.lon }}",
            "geo:{{ venue.lat }},{{ venue.lon }}",
        ),
    ),
    undo(
        "tickets of a standing area have numbers",
        "tests/journeys/test_site_standing.py",
        ("src/holdfast/tickets/texts/en.toml", 'place = "Standing"\n', 'place = "Standing place {number}"\n'),
    ),
    undo(
        "headings stick to what follows",
        "tests/browser/test_account_pages.py -k headings",
        (f"{SITE}/static/css/base.css", ".narrow > h1 { margin-bottom: var(--s4); }\n", ""),
    ),
    undo(
        "an address has the German order everywhere",
        "tests/rules/test_addresses.py",
        (
            f"{SITE}/i18n.py",
            "    town = (city, postal_code) if country in POSTAL_CODE_LAST else (postal_code, city)\n",
            "    town = (postal_code, city)\n",
        ),
    ),
    undo(
        "a calendar entry has the internal id of its booking",
        "tests/rules/test_ticket_pictures.py -k buyers_know",
        (
            "src/holdfast/tickets/calendar.py",
            "{reference(occasion.show_id, number)}",
            "{public_id(occasion.show_id, number)}",
        ),
    ),
    undo(
        "refunded and expired bookings of coming shows are past",
        f"{TICKETS} -k not_past",
        (
            f"{SITE}/my_bookings.py",
            '    ended = [one for one in rest if one.show["ends_at"] > now]\n',
            "    ended = []\n",
        ),
    ),
    undo(
        "the recipient does not learn that a gift was taken back",
        "tests/stores/test_notices_kinds.py",
        (
            "src/holdfast/notifications/notice.py",
            "        case TicketTakenBack() as back:\n",
            "        case TicketTakenBack() as back if False:\n",
        ),
    ),
    undo(
        "the name of a day touches the edges of its tile",
        "tests/browser/test_browse.py -k name_of_a_day",
        (
            f"{SITE}/static/css/browse.css",
            "  flex: 0 0 auto;\n  min-width: 4.4rem;\n  display: grid;\n  justify-items: center;\n"
            "  padding: var(--s2) var(--s3);\n",
            "  flex: 0 0 4.4rem;\n  display: grid;\n  justify-items: center;\n  padding: var(--s2) 0;\n",
        ),
    ),
    undo(
        "labels of a ticket are not on one line",
        "tests/browser/test_checkout.py -k every_booking_state",
        (
            f"{SITE}/static/css/checkout.css",
            ".where { display: flex; flex-wrap: wrap;",
            ".where { display: flex; align-items: flex-end; flex-wrap: wrap;",
        ),
    ),
    undo(
        "a free show costs ₹0",
        "tests/journeys/test_site_free.py -k says_free",
        (
            f"{SITE}/i18n.py",
            'self.money(amount_minor, currency) if amount_minor else self.t("shell.free")',
            "self.money(amount_minor, currency)",
        ),
    ),
)
