"""A payer on the sandbox's payment page: pays, is declined, is challenged by the bank, is late (R20, R24)."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.payments.gateway import Charge, ChargeOrder, GatewayAnswer
from tests.support.sandbox_server import Desk, Shop, a_sandbox, a_shop, an_order

BACK = "https://shop.example/bookings/7?paid=maybe"


@pytest.fixture(scope="module")
async def shop() -> AsyncIterator[Shop]:
    async with a_shop() as opened:
        yield opened


@pytest.fixture(scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory, shop: Shop) -> AsyncIterator[Desk]:
    async with a_sandbox(
        tmp_path_factory.mktemp("sandbox"), shop.url, merchant="Ann & Bob's <Hall>"
    ) as opened:
        yield opened


class Payer:
    """A payer with a browser that runs no scripts."""

    def __init__(self, desk: Desk, order: ChargeOrder, charge: Charge) -> None:
        assert charge.action_url is not None
        self.desk, self.order, self.address = desk, order, charge.action_url
        self.reference = charge.reference

    async def looks(self) -> tuple[int, str, Any]:
        async with self.desk.session.get(self.address) as answer:
            return answer.status, await answer.text(), answer.headers

    async def chooses(self, choice: str) -> str:
        """Where they are sent."""
        async with self.desk.session.post(
            self.address, data={"choice": choice}, allow_redirects=False
        ) as answer:
            assert answer.status == 303
            return answer.headers["Location"]

    async def answer(self) -> tuple[GatewayAnswer, str | None]:
        charge = await self.desk.gateway.look_up(key=self.order.key, reference=self.reference)
        return charge.answer, charge.code


async def a_payer(desk: Desk, method: str = "", **changes: Any) -> Payer:
    order = an_order(method, **{"return_url": BACK, **changes})
    return Payer(desk, order, await desk.gateway.charge(order))


class Outline(HTMLParser):
    """The tags of a page and what they carry."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [carried for name, carried in self.tags if name == tag]


async def test_the_page_names_payee_amount_and_purpose(desk: Desk) -> None:
    payer = await a_payer(desk, description="2 seats, <b>Hamlet</b> & more", amount_minor=123456)

    status, text, headers = await payer.looks()

    assert status == 200
    assert "Ann &amp; Bob&#x27;s &lt;Hall&gt;" in text
    assert re.search(r"<h1[^>]*>Payment<", text)
    assert "2 seats, &lt;b&gt;Hamlet&lt;/b&gt; &amp; more" in text
    assert re.search("€\\s1\\s234\\.56", text)
    assert "No real card is needed" in text
    assert headers["Cache-Control"] == "no-store"


async def test_the_page_works_without_scripts_and_only_for_its_own_payment(desk: Desk) -> None:
    payer = await a_payer(desk)

    _, text, headers = await payer.looks()
    outline = Outline(text)

    assert not outline.all("script")
    assert not any(
        name.startswith("on") or name == "style" for _, carried in outline.tags for name in carried
    )
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' https://shop.example" in policy
    assert headers["Referrer-Policy"] == "no-referrer"
    assert outline.all("html") == [{"lang": "en"}]
    assert {carried["method"] for carried in outline.all("form")} == {"post"}
    assert len(outline.all("h1")) == len(outline.all("main")) == len(outline.all("title")) == 1
    [sheet] = outline.all("link")
    async with desk.session.get(f"{desk.url}{sheet['href']}") as css:
        assert css.status == 200
        assert css.content_type == "text/css"


async def test_every_button_can_be_pressed(desk: Desk) -> None:
    _, text, _ = await (await a_payer(desk)).looks()
    buttons = [carried["value"] for carried in Outline(text).all("button")]

    assert len(buttons) == len(set(buttons)) >= 8
    for button in buttons:
        payer = await a_payer(desk)
        assert button is not None
        assert await payer.chooses(button) in (BACK, payer.address.removeprefix(desk.url))


async def test_pay_and_go_back(desk: Desk, shop: Shop) -> None:
    payer = await a_payer(desk)

    assert await payer.chooses("pay") == BACK

    assert await payer.answer() == (GatewayAnswer.YES, None)
    await shop.hears(payer.order.key, "payment.captured")
    status, text, _ = await payer.looks()
    assert status == 200
    assert "Back to the shop" in text
    assert not Outline(text).all("button")


async def test_declined(desk: Desk, shop: Shop) -> None:
    payer = await a_payer(desk)

    assert await payer.chooses("decline") == BACK

    assert await payer.answer() == (GatewayAnswer.NO, "card_declined")
    await shop.hears(payer.order.key, "payment.declined")


@pytest.mark.parametrize(
    ("choice", "outcome"),
    [("approve", (GatewayAnswer.YES, None)), ("refuse", (GatewayAnswer.NO, "authentication_failed"))],
)
@pytest.mark.parametrize("method", ["", "tok_3ds"])
async def test_the_bank_challenges_the_payer(
    desk: Desk, method: str, choice: str, outcome: tuple[GatewayAnswer, str | None]
) -> None:
    payer = await a_payer(desk, method)
    if not method:
        assert await payer.chooses("ask") == payer.address.removeprefix(desk.url)
    assert await payer.answer() == (GatewayAnswer.UNKNOWN, None)
    _, text, _ = await payer.looks()
    assert "3-D Secure" in text
    assert "the payment is declined" in text

    assert await payer.chooses(choice) == BACK

    assert await payer.answer() == outcome


async def test_three_d_secure_cannot_be_skipped_with_other_buttons(desk: Desk) -> None:
    payer = await a_payer(desk, "tok_3ds")

    assert await payer.chooses("pay") != BACK

    assert await payer.answer() == (GatewayAnswer.UNKNOWN, None)


async def test_back_before_the_money_has_come(desk: Desk, shop: Shop) -> None:
    payer = await a_payer(desk)

    assert await payer.chooses("late") == BACK

    assert await payer.answer() == (GatewayAnswer.UNKNOWN, None)
    assert payer.reference is not None
    await desk.becomes(payer.reference, "captured")
    await shop.hears(payer.order.key, "payment.captured")


async def test_a_payer_can_return_undecided_or_cancel(desk: Desk) -> None:
    payer = await a_payer(desk)

    assert await payer.chooses("silent") == BACK

    assert await payer.answer() == (GatewayAnswer.UNKNOWN, None)
    await desk.gateway.call_off(key=payer.order.key, reference=payer.reference)
    assert await payer.chooses("pay") == payer.address.removeprefix(desk.url)
    assert await payer.answer() == (GatewayAnswer.NO, "cancelled")


@pytest.mark.parametrize(
    ("choice", "kinds"),
    [
        ("twice", ["payment.captured", "payment.captured"]),
        ("out_of_order", ["payment.captured", "payment.processing"]),
    ],
)
async def test_notices_as_ordered(desk: Desk, shop: Shop, choice: str, kinds: list[str]) -> None:
    payer = await a_payer(desk)

    await payer.chooses(choice)

    await shop.hears(payer.order.key, *kinds)


async def test_the_shop_knows_before_the_payer_is_back(desk: Desk, shop: Shop) -> None:
    payer = await a_payer(desk)

    await payer.chooses("first")

    assert shop.about(payer.order.key) == ["payment.captured"]


async def test_two_tabs_pay_once(desk: Desk, shop: Shop) -> None:
    payer = await a_payer(desk)

    first, second = await payer.chooses("pay"), await payer.chooses("decline")

    assert first == BACK
    assert second == payer.address.removeprefix(desk.url)
    assert await payer.answer() == (GatewayAnswer.YES, None)
    await shop.hears(payer.order.key, "payment.captured")


async def test_a_cancelled_payment_cannot_be_paid(desk: Desk) -> None:
    payer = await a_payer(desk)
    await desk.gateway.call_off(key=payer.order.key, reference=None)

    await payer.chooses("pay")

    assert await payer.answer() == (GatewayAnswer.NO, "cancelled")


async def test_without_a_return_address_the_page_shows_the_outcome(desk: Desk) -> None:
    payer = await a_payer(desk, return_url="")

    assert await payer.chooses("pay") == payer.address.removeprefix(desk.url)

    _, text, _ = await payer.looks()
    assert "The payment has been made" in text


@pytest.mark.parametrize("name", ["", "0" * 36, "page.html", "..%2f..%2fetc%2fpasswd", "a/b"])
async def test_an_address_that_was_guessed_shows_nothing(desk: Desk, name: str) -> None:
    async with desk.session.get(f"{desk.url}/pay/{name}") as shown:
        assert shown.status == 404
        assert "There is no payment at this address" in await shown.text()
    async with desk.session.post(f"{desk.url}/pay/{name}", data={"choice": "pay"}) as posted:
        assert posted.status == 404


async def test_an_unknown_choice_changes_nothing(desk: Desk) -> None:
    payer = await a_payer(desk)

    for choice in ("", "capture", "approve"):
        await payer.chooses(choice)
    async with aiohttp.ClientSession() as session:
        async with session.put(payer.address) as refused:
            assert refused.status == 405

    assert await payer.answer() == (GatewayAnswer.UNKNOWN, None)


def test_the_page_loads_nothing_from_other_hosts() -> None:
    folder = Path(__file__).parents[2] / "src" / "holdfast" / "sandbox" / "static"

    for file in ("page.html", "page.css"):
        assert "//" not in (folder / file).read_text()
