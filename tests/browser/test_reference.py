"""The API reference at /docs: Swagger UI from our own host, under a strict policy, on the running box office.

A script or style that the policy blocks is an error on the console, and fails the test (conftest.py).
"""

from playwright.async_api import Page, Request, expect

from holdfast.web.audiences import DOCUMENTS
from holdfast.web.caller import Role
from tests.support.box_office import Office
from tests.support.shows import Fan, fans

LINKS = dict(zip(("Fans", "Organisers", "House"), DOCUMENTS.values(), strict=True))


async def authorize(page: Page, fan: Fan) -> None:
    await page.get_by_role("button", name="Authorize").first.click()
    await page.get_by_label("auth-bearer-value").fill(fan.token)
    await page.get_by_role("button", name="Apply credentials").click()
    await page.locator(".auth-btn-wrapper").get_by_role("button", name="Close").click()


async def test_a_token_and_try_it_out_call_the_running_server(page: Page, house: Office) -> None:
    (fan,) = await house.fans(1)
    requested: list[str] = []

    def note(request: Request) -> None:
        requested.append(request.url)

    page.on("request", note)
    await page.goto("/docs")
    await authorize(page, fan)
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


async def test_every_operation_can_be_found_on_the_page(page: Page) -> None:
    """Swagger UI leaves out what is not near the window once too many entries are open."""
    await page.goto("/docs")
    for link, about in LINKS.items():
        await page.get_by_role("navigation", name="Documents").get_by_role("link", name=link).click()
        document = await (await page.request.get(about.path)).json()
        operations = [one for path in document["paths"].values() for one in path.values()]

        await expect(page.get_by_role("heading", name=about.title, exact=False).first).to_be_visible()
        await expect(page.locator(".opblock")).to_have_count(len(operations))
        await expect(page.get_by_role("link", name="OpenAPI 3.1")).to_have_attribute("href", about.path)
        await expect(page.locator("[aria-current=page]")).to_have_text(link)


async def test_the_token_stays_when_the_document_changes(page: Page, house: Office) -> None:
    (admin,) = await fans(house.app, house.api, 1, Role.ADMIN)
    await page.goto("/docs")
    await authorize(page, admin)
    await page.get_by_role("link", name="House", exact=True).click()
    operation = page.locator("#operations-admin-list_organisations")
    await operation.locator(".opblock-summary-control").click()
    await operation.get_by_role("button", name="Execute").click()
    status = operation.locator(".live-responses-table .response .response-col_status")

    await expect(status).to_contain_text("200")


async def test_a_document_has_an_address(page: Page) -> None:
    await page.goto("/docs?for=house")
    await expect(page.locator("#operations-admin-list_organisations")).to_be_visible()

    await page.get_by_role("link", name="Organisers", exact=True).click()
    await expect(page.locator("#operations-admin-create_event")).to_be_visible()
    await page.go_back()
    await expect(page.locator("#operations-admin-list_organisations")).to_be_visible()
