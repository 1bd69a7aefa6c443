"""Pages that set up a house, invite to a team and show legal texts, in a real browser (R31)."""

import secrets
from collections.abc import Awaitable, Callable

from playwright.async_api import Page, expect

from holdfast.accounts import MailToken, NewAccount, Purpose
from holdfast.app import App
from holdfast.legal import LegalKind
from holdfast.legal.text import LegalBody
from holdfast.organisations.organisation import NewInvitation
from holdfast.web.caller import Role, Scope
from tests.support.box_office import Office
from tests.support.wait import until

PASSWORD = "correct horse battery staple"
FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
TEXT = "# What you buy\n\nA seat for one night.\n\n- no refunds\n- no umbrellas\n"


async def signs_in_as_admin(house: Office, page: Page) -> int:
    email = f"ada-{secrets.token_hex(4)}@example.org"
    hashed = await house.app.accounts.hashed(PASSWORD)
    (account_id,) = await house.app.accounts.add_many([NewAccount(email, "Ada", Role.ADMIN, hashed)])
    await page.goto("/sign-in")
    await page.fill("#email", email)
    await page.fill("#password", PASSWORD)
    await page.keyboard.press("Enter")
    await page.wait_for_url(lambda url: "/sign-in" not in url)
    return account_id


async def a_link_after_the_mail(app: App, invitation_id: int) -> str:
    """Each mail has a link of its own, which ends the one before: the worker's mail comes first."""
    is_mailed = "SELECT token_hash IS NOT NULL FROM invitation WHERE id = $1"
    await until(lambda: app.postgres.fetchval(is_mailed, invitation_id))
    token = await app.invitations.issue_token(invitation_id)
    assert token is not None
    return token


async def test_they_are_accessible_and_fit_a_phone(
    house: Office, phone: Page, axe: Callable[[Page], Awaitable[None]]
) -> None:
    app = house.app
    begin = await app.mail_tokens.issue(MailToken(purpose=Purpose.BEGIN, email=""))
    account_id = await signs_in_as_admin(house, phone)
    team = await app.organisations.create("The Paper Mill", account_id)
    invited = await app.invitations.invite(
        Scope(account_id, True, team.organisation_id),
        NewInvitation(email="omar@example.org", rights=["catalogue", "door"]),
    )
    link = await a_link_after_the_mail(app, invited.invitation_id)
    for text in (TEXT, f"{TEXT}\nNo dogs."):
        await app.legal.publish(team.organisation_id, LegalKind.TERMS, LegalBody({"en": text}))
    pages = {
        f"/link/{begin}": "Set up your box office",
        "/begin": "Set up your box office",
        f"/link/{link}": "Join a team",
        f"/organisations/{team.organisation_id}/legal/terms/1": "Terms",
    }
    for path, heading in pages.items():
        await phone.goto(path)
        await expect(phone.get_by_role("heading", level=1)).to_have_text(heading)
        for scheme in ("light", "dark"):
            await phone.emulate_media(color_scheme=scheme)
            await axe(phone)
        assert await phone.evaluate(FITS), path
