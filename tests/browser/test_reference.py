"""The API reference at /docs: Swagger UI from our own host, under a strict policy, on the running box office.

A script or style that the policy blocks is an error on the console, and fails the test (conftest.py).
"""

from playwright.async_api import Page, Request, expect

from tests.support.box_office import Office


async def test_a_token_and_try_it_out_call_the_running_server(page: Page, house: Office) -> None:
    (fan,) = await house.fans(1)
    requested: list[str] = []

    def note(request: Request) -> None:
        requested.append(request.url)

    page.on("request", note)
    await page.goto("/docs")
    await page.get_by_role("button", name="Authorize").first.click()
    await page.get_by_label("auth-bearer-value").fill(fan.token)
    await page.get_by_role("button", name="Apply credentials").click()
    await page.locator(".auth-btn-wrapper").get_by_role("button", name="Close").click()
    operation = page.locator("#operations-accounts-get_account")
    await operation.locator(".opblock-summary-control").click()
    await operation.get_by_role("button", name="Execute").click()

    answer = operation.locator(".live-responses-table .response")
    await expect(answer.locator(".response-col_status")).to_contain_text("200")
    await expect(answer.locator(".response-col_description")).to_contain_text(
        f'"account_id": {fan.account_id}'
    )
    assert {url for url in requested if not url.startswith((house.url, "data:"))} == set()


async def test_every_problem_code_of_an_operation_links_to_its_page(page: Page) -> None:
    await page.goto("/docs")
    operation = page.locator("#operations-sale-hold_seats")
    await operation.locator(".opblock-summary-control").click()
    await expect(operation.get_by_role("link", name="seats_taken")).to_have_attribute(
        "href", "/problems/seats_taken"
    )
