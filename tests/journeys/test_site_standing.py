"""Tickets of a standing area, for fans: how many and where, without numbers of places."""

import re
from collections.abc import Callable
from typing import Any

from holdfast.demo.halls import club
from holdfast.layouts import Layout
from tests.support.browser_session import ANN, Visitor
from tests.support.html_page import reading
from tests.support.pdf import words_on

NUMBERED = re.compile(r"Floor-\d|[Pp]lace \d|[Ss]tanding,? \d")


async def test_tickets_of_a_standing_area_have_no_numbers(ann: Visitor, a_show: Callable[..., Any]) -> None:
    show = await a_show(layout=Layout.build(club()), price_minor=0)
    await ann.client.post(f"/shows/{show}/hold", data={"section": "Floor", "quantity": "2"})
    await ann.goes("/my")
    pages = [reading(ann.text).text]
    path = re.search(r'href="(/bookings/[a-z2-7]{20})"', ann.text)
    assert path is not None
    await ann.goes(path[1])
    pages.append(reading(ann.text).text)
    await ann.sends("/pay", **ANN)
    pages.append(reading(ann.text).text)
    assert ann.says("Standing")
    link = re.search(r'href="(/tickets/[^"]+)"', ann.text)
    assert link is not None
    ticket = await ann.client.get(link[1])
    paper = await ann.client.get(f"{path[1]}/tickets.pdf")

    pages += [reading(ticket.text).text, words_on(paper.content)]

    assert not [found for page in pages for found in NUMBERED.findall(page)]
    assert all("tanding" in page for page in pages), pages
