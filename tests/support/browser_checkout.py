"""Holds seats in a real browser and pays on the sandbox's page."""

from urllib.parse import urlencode

from playwright.async_api import Page

from holdfast.bookings import from_public_id
from holdfast.claim import Settlement
from tests.support.box_office import Office

ANN = ("Ann Otter", "ann@example.org")
HOLD_ENDS = "UPDATE booking SET expires_at = now() + $3 * interval '1 s' WHERE show_id = $1 AND number = $2"
PAYMENT_ENDS = """
    UPDATE payment
       SET step = 'watch', deadline_at = now() - interval '1 s', hold_ends_at = now() - interval '2 s',
           due_at = now() + interval '1 h'
     WHERE show_id = $1 AND number = $2"""
CHARGES = "SELECT count(*) FROM payment WHERE show_id = $1 AND number = $2"


async def holds(page: Page, show: int, *seats: str) -> str:
    """The page of the booking is open afterwards; its path."""
    answer = await page.request.post(
        f"/shows/{show}/hold",
        data=urlencode([("seats", seat) for seat in seats]),
        headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
    )
    assert answer.ok, await answer.text()
    path = str((await answer.json())["go"])
    await page.goto(path)
    return path


async def begins_to_pay(page: Page) -> None:
    """The page of the gateway is open afterwards."""
    if await page.locator("#email").count():
        await page.fill("#name", ANN[0])
        await page.fill("#email", ANN[1])
    await page.click("#pay button")
    await page.wait_for_url("**/pay/**")


async def pays(page: Page, choice: str = "pay") -> None:
    await begins_to_pay(page)
    await page.click(f"button[value={choice}]")
    await page.wait_for_url("**/bookings/**")


async def has_bought(page: Page, show: int, *seats: str) -> str:
    path = await holds(page, show, *seats)
    await pays(page)
    await page.wait_for_selector(".qr")
    return path


def key(path: str) -> tuple[int, int]:
    return from_public_id(path.split("/")[2])


async def ends_in(house: Office, path: str, seconds: int) -> None:
    """The clock is turned: the hold of this booking has so many seconds left."""
    await house.app.postgres.execute(HOLD_ENDS, *key(path), seconds)


async def charges(house: Office, path: str) -> int:
    return int(await house.app.postgres.fetchval(CHARGES, *key(path)))


async def is_given_up(house: Office, path: str) -> None:
    """The gateway was silent beyond the deadline: the seats have gone, and the payment is watched."""
    app = house.app
    await app.postgres.execute(PAYMENT_ENDS, *key(path))
    await ends_in(house, path, -2)
    payment = await app.payments.latest(*key(path))
    assert payment is not None
    await app.payments.release(payment, is_sure=False, due_ms=3_600_000)
    await app.holds.update_map(payment.show_id, Settlement("release", payment.claim))
