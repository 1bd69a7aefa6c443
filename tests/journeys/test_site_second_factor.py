"""Two-step sign-in on pages, in a browser without scripts (R31)."""

import json
import re
from html import unescape

import httpx2
import pytest

from holdfast.accounts import NewAccount, Purpose
from holdfast.accounts.second_factor import RECOVERY_CODES
from holdfast.app import App
from holdfast.web.asgi import Application
from tests.support.authenticator import Authenticator
from tests.support.browser_session import Visitor, a_visitor
from tests.support.mailed_links import a_link
from tests.support.second_factors import PASSWORD, Holder, a_holder
from tests.support.site_paths import AWAY

CODE = re.compile(r"<code>([A-Z2-7-]{19})</code>")
SECRET = re.compile(r'<code class="secret">([A-Z2-7 ]+)</code>')
SECURITY = "/account/security"


async def a_visitor_with_an_account(app: App, ann: Visitor, email: str) -> Holder:
    hashed = await app.accounts.hashed(PASSWORD)
    (account_id,) = await app.accounts.add_many([NewAccount(email, "Ann", password_hash=hashed)])
    await ann.goes("/sign-in")
    await ann.sends("/sign-in", email=email, password=PASSWORD)
    assert ann.says("Ann")
    return Holder(app, ann.client, account_id, email)


async def sets_up_an_app(ann: Visitor, holder: Holder) -> None:
    await ann.goes(SECURITY)
    await ann.sends(f"{SECURITY}/totp", current_password="a guess")
    assert (ann.status, ann.says("The password is wrong.")) == (403, True)
    await ann.sends(f"{SECURITY}/totp", current_password=PASSWORD)
    assert ann.at == f"{SECURITY}/totp"
    assert 'src="data:image/svg+xml;base64,' in ann.text
    holder.secret = SECRET.findall(ann.text)[0].replace(" ", "")
    await ann.sends(f"{SECURITY}/totp/confirm", code="000000x")
    assert (ann.status, ann.says("The code is wrong")) == (403, True)
    await ann.sends(f"{SECURITY}/totp/confirm", code=await holder.code())
    holder.codes = CODE.findall(unescape(ann.text))
    assert len(holder.codes) == RECOVERY_CODES
    await holder.wait_half_a_minute()


async def test_from_set_up_to_sign_in_and_removal(
    app: App, site: Application, ann: Visitor, eve: Visitor
) -> None:
    holder = await a_visitor_with_an_account(app, ann, "second-pages@example.org")
    await sets_up_an_app(ann, holder)
    await ann.goes("/account")
    assert ann.says("Your account is protected by a second step.")

    await eve.goes("/sign-in?back=/account")
    await eve.sends("/sign-in", email=holder.email, password=PASSWORD)
    assert (eve.at, eve.says("One more step")) == ("/sign-in", True)
    await eve.sends("/sign-in/second", code="ABCD-EFGH")
    assert (eve.status, eve.says("The code is wrong")) == (403, True)
    await eve.sends("/sign-in/second", code=await holder.code())
    assert eve.at == "/account"

    async with a_visitor(site) as by_link:
        path = f"/link/{await a_link(app, Purpose.SIGN_IN, holder.email)}"
        await by_link.goes(path)
        await by_link.sends(path)
        assert by_link.says("One more step")
        await by_link.sends("/sign-in/second", code=holder.codes[0])
        assert by_link.at == "/my"

    await eve.goes(SECURITY)
    assert eve.says("9 codes left.")
    await eve.sends(f"{SECURITY}/recovery-codes", current_password=PASSWORD)
    assert not set(CODE.findall(eve.text)) & set(holder.codes)
    await eve.goes(SECURITY)
    await eve.sends(f"{SECURITY}/totp/remove", current_password=PASSWORD)
    assert eve.says("The authenticator app was removed.")
    assert not (await app.second_factors.status(holder.account_id)).is_on


async def test_an_expired_sign_in_begins_again(app: App, ann: Visitor, eve: Visitor) -> None:
    holder = await a_visitor_with_an_account(app, ann, "second-late@example.org")
    await sets_up_an_app(ann, holder)
    await eve.goes("/sign-in")
    await eve.sends("/sign-in", email=holder.email, password=PASSWORD)
    await app.postgres.execute(
        "UPDATE sign_in_step SET expires_at = now() WHERE account_id = $1", holder.account_id
    )
    await eve.sends("/sign-in/second", code=await holder.code())
    assert (eve.status, eve.says("Please sign in again.")) == (410, True)


@pytest.fixture(scope="module")
async def holder(app: App, api: httpx2.AsyncClient) -> Holder:
    return await a_holder(app, api)


@pytest.fixture(scope="module")
async def key(app: App, holder: Holder) -> Authenticator:
    """A passkey of the holder's."""
    made = Authenticator()
    begun = await holder.post("/me/passkeys/options", current_password=PASSWORD)
    credential = made.create(begun.json()["public_key"])
    assert (await holder.post("/me/passkeys", name="Phone", credential=credential)).status_code == 201
    return made


@pytest.mark.parametrize("back", AWAY)
async def test_no_second_step_leads_away(
    back: str, ann: Visitor, eve: Visitor, holder: Holder, key: Authenticator
) -> None:
    token = await holder.first_step()
    await holder.wait_half_a_minute()
    form = {"token": token, "code": await holder.code(), "back": back}
    by_code = await ann.client.post("/sign-in/second", data=form)
    options = (await eve.client.post("/sign-in/passkey/options", data={})).json()
    refused = await eve.client.post("/sign-in/passkey", data={"credential": "{}", "back": back})
    signed = json.dumps(key.get(options))
    by_passkey = await eve.client.post("/sign-in/passkey", data={"credential": signed, "back": back})

    for answer in (by_code, by_passkey):
        assert (answer.status_code, answer.headers["location"]) == (303, "/my"), answer.text[:300]
    assert "evil.example" not in refused.text
