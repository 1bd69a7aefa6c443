"""The other pages of the desk without scripts: blocks, door, team, webhooks, refunds by hand, log, house."""

import re
from itertools import count

import httpx2
import pytest

from holdfast.app import App
from holdfast.bookings import BookingState, public_id
from holdfast.legal import HOUSE, LegalKind
from holdfast.refunds.refund import RefundState
from holdfast.web.asgi import Application
from holdfast.web.caller import Role
from tests.support.browser_session import Visitor, a_visitor
from tests.support.desk import DeskHouse, a_desk_house, sit_down
from tests.support.paid_bookings import a_refund, now_of, refund_jobs, refunds_of
from tests.support.shows import fans, problem
from tests.support.wait import until

_numbers = count(1)


@pytest.fixture
async def house(app: App, api: httpx2.AsyncClient) -> DeskHouse:
    return await a_desk_house(app, api)


@pytest.fixture
async def clerk(app: App, ann: Visitor, house: DeskHouse) -> Visitor:
    """The owner, in a browser."""
    return await sit_down(app, ann, house.organisation_id)


@pytest.fixture
async def admin(app: App, api: httpx2.AsyncClient, eve: Visitor) -> Visitor:
    (who,) = await fans(app, api, 1, Role.ADMIN)
    return await sit_down(app, eve, who.account_id)


async def test_seats_are_blocked_and_put_on_sale(app: App, clerk: Visitor, house: DeskHouse) -> None:
    path = f"{house.path}/shows/{house.show_id}/blocks"
    await clerk.goes(path)

    await clerk.sends("/blocks", name="Press", seats="A-1, A-2 A-3", hours="")
    assert clerk.says("A-1, A-2, A-3")
    await clerk.sends("/blocks", name="More", seats="A-3 A-4", hours="")
    assert clerk.status == 422
    assert clerk.says("A-3")
    await clerk.sends("/blocks", name="More", seats="Q-99", hours="")
    assert clerk.status == 422
    await clerk.goes(path)
    await clerk.sends("/release")

    assert clerk.says("The seats are on sale.")
    assert await app.blocks.all(house.show_id) == []


async def test_a_cancelled_show_shows_how_far_its_refunds_are(
    app: App, clerk: Visitor, house: DeskHouse
) -> None:
    booking = await house.buys(app, 0, 1)
    path = f"{house.path}/shows/{house.show_id}/cancel"
    await clerk.goes(path)
    assert clerk.says("1 booking will be refunded in full")

    await clerk.sends("/cancel", title="Another title")
    assert clerk.status == 422
    await clerk.sends("/cancel", title=house.title)
    assert clerk.says("0 of 1 bookings refunded")
    assert 'http-equiv="refresh"' in clerk.text

    async def is_over() -> bool:
        jobs = refund_jobs(app)
        await jobs.refund_shows()
        await jobs.carry_out()
        await jobs.wait_until_idle()
        return (await app.refund_store.cancellation(house.show_id)).is_over

    await until(is_over)
    await clerk.goes(path)
    assert clerk.says("1 of 1 bookings refunded")
    assert 'http-equiv="refresh"' not in clerk.text
    assert (await now_of(app, booking)).state is BookingState.REFUNDED


async def test_a_pass_is_made_shown_once_and_revoked(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await clerk.goes(f"{house.path}/door?show={house.show_id}")

    await clerk.sends("/door", gate="North", name="Phone 1")
    found = re.search(r'<code class="secret code">([A-Z2-7]{32})</code>', clerk.text)
    assert found is not None
    await clerk.goes(f"{house.path}/door")
    assert found[1] not in clerk.text
    assert clerk.says("Not used yet")
    await clerk.sends("/revoke")

    assert clerk.says("Revoked")
    (one,) = (await app.passes.of(house.organisation_id, house.show_id)).passes
    assert one.revoked_at is not None


class TestTeam:
    async def test_a_member_gets_rights_and_is_removed(
        self, app: App, api: httpx2.AsyncClient, clerk: Visitor, eve: Visitor, house: DeskHouse
    ) -> None:
        (fan,) = await fans(app, api, 1)
        await app.organisations.add_member(house.organisation_id, fan.account_id, [])
        member = await sit_down(app, eve, fan.account_id)
        await member.goes(f"{house.path}/door")
        assert member.status == 403

        await clerk.goes(f"{house.path}/team")
        await clerk.sends(f"/{fan.account_id}/rights", rights=["door"])
        await member.goes(f"{house.path}/door")
        assert member.status == 200
        await clerk.sends(f"/{fan.account_id}/remove")

        await member.goes(f"{house.path}/door")
        assert member.status == 404
        await clerk.goes(f"{house.path}/audit-log")
        assert clerk.says("member.removed")

    async def test_a_person_is_invited_and_the_invitation_withdrawn(
        self, app: App, clerk: Visitor, house: DeskHouse
    ) -> None:
        await clerk.goes(f"{house.path}/team")
        await clerk.sends("/team/invitations", email="not an address")
        assert clerk.status == 422
        await clerk.sends("/team/invitations", email="new@example.org", rights=["refund"])
        assert clerk.says("Invited.")
        assert clerk.says("new@example.org")
        (first,) = await app.invitations.list_open(house.organisation_id)
        await clerk.sends("/resend")
        assert clerk.says("Sent again.")
        (second,) = await app.invitations.list_open(house.organisation_id)
        assert (second.email, second.rights) == (first.email, first.rights)
        assert second.invitation_id != first.invitation_id
        await clerk.sends("/withdraw")

        assert await app.invitations.list_open(house.organisation_id) == []

    async def test_the_only_owner_cannot_leave(self, clerk: Visitor, house: DeskHouse) -> None:
        await clerk.goes(f"{house.path}/team")
        await clerk.sends("/team/leave")

        assert clerk.status == 409
        assert clerk.says("This is the only owner.")

    async def test_the_organisation_is_renamed(self, clerk: Visitor, house: DeskHouse) -> None:
        await clerk.goes(f"{house.path}/settings")
        await clerk.sends("/settings", name="")
        assert clerk.status == 422
        await clerk.sends("/settings", name="Lotus & Friends")

        assert clerk.says("Lotus & Friends")


async def test_an_endpoint_is_added_switched_and_deleted(clerk: Visitor, house: DeskHouse) -> None:
    await clerk.goes(f"{house.path}/webhooks")
    await clerk.sends("/webhooks", url="ftp://example.com")
    assert clerk.status >= 400
    await clerk.sends("/webhooks", url="https://example.com/hook")
    assert "whsec_" in clerk.text
    await clerk.goes(f"{house.path}/webhooks")
    assert "whsec_" not in clerk.text
    link = re.search(rf"{house.path}/webhooks/\d+", clerk.text)
    assert link is not None
    await clerk.goes(link[0])
    await clerk.sends("/switch")
    assert clerk.says("Off")
    await clerk.sends("/delete")

    assert clerk.says("No endpoints yet.")


async def test_a_refused_refund_is_paid_by_hand_and_recorded(
    app: App, clerk: Visitor, house: DeskHouse
) -> None:
    booking = await house.buys(app, 0)
    await app.refunds.decide(a_refund(booking))
    (refund,) = await refunds_of(app, booking)
    await app.refund_store.reopen(refund, "The bank account is closed.")
    await clerk.goes(f"{house.path}/refunds")
    assert clerk.says("The bank account is closed.")

    await clerk.sends("/paid", note="")
    assert clerk.status == 422
    await clerk.sends("/paid", note="Cash, receipt 7")

    (after,) = await refunds_of(app, booking)
    assert (after.state, after.settled_note) == (RefundState.DONE, "Cash, receipt 7")


class TestTwoPeople:
    async def test_a_large_refund_waits_for_a_second_person(
        self, app: App, api: httpx2.AsyncClient, clerk: Visitor, eve: Visitor, house: DeskHouse
    ) -> None:
        (fan,) = await fans(app, api, 1)
        await app.organisations.add_member(house.organisation_id, fan.account_id, ["refund"])
        colleague = await sit_down(app, eve, fan.account_id)
        booking = await house.buys(app, 0)
        await clerk.goes(f"{house.path}/settings")
        await clerk.sends("/refund-limits", currency="INR", amount="100")
        assert clerk.says("Saved.")

        page = f"{house.path}/bookings/{public_id(booking.show_id, booking.number)}"
        await colleague.goes(f"{page}/refund?seats=A-1")
        await colleague.sends("/refund")
        assert colleague.says("A colleague must approve this refund.")
        assert (await now_of(app, booking)).state is BookingState.CONFIRMED
        await colleague.goes(f"{house.path}/refunds")
        assert "/approve" not in colleague.text
        await clerk.goes(f"{house.path}/refunds")
        await clerk.sends("/approve")

        assert clerk.says("Approved.")
        assert (await now_of(app, booking)).state is BookingState.REFUNDED

    @pytest.mark.parametrize("amount", ["1e9999999", "NaN", "-5", "1.234", "x"])
    async def test_an_amount_that_is_none_changes_nothing(
        self, app: App, clerk: Visitor, house: DeskHouse, amount: str
    ) -> None:
        await clerk.goes(f"{house.path}/settings")
        await clerk.sends("/refund-limits", currency="INR", amount=amount)

        assert clerk.says("Enter an amount such as 500 or 99.50")
        assert await app.refund_store.approvals.limits(house.organisation_id) == []


class TestHouse:
    async def test_the_state_says_what_to_do_next(self, admin: Visitor) -> None:
        await admin.goes("/desk")
        assert admin.at == "/desk/house"
        assert admin.says("PostgreSQL")

        await admin.sends("/audit")
        assert admin.status == 200
        assert admin.says("checks.") or admin.says("found")

    async def test_an_account_is_banned_and_gets_a_new_link(
        self, app: App, api: httpx2.AsyncClient, admin: Visitor, ann: Visitor
    ) -> None:
        (fan,) = await fans(app, api, 1)
        await (await sit_down(app, ann, fan.account_id)).goes("/account")
        assert ann.at == "/account"

        path = f"/desk/house/accounts/{fan.account_id}"
        await admin.goes("/desk/house/accounts?q=fan&role=fan")
        assert path in admin.text
        await admin.goes("/desk/house/accounts?q=fan&role=admin")
        assert path not in admin.text
        await admin.goes(path)
        await admin.sends("/ban")
        assert admin.says("The account is blocked")
        await ann.goes("/account")
        assert ann.at == "/sign-in"
        await admin.sends("/unban")
        await admin.sends("/role", role="gate")
        assert (await app.account_admin.find(fan.account_id)).account.role is Role.GATE
        await admin.sends("/reset")
        assert re.search(r"/link/[\w-]{20,}", admin.text)

    async def test_an_organisation_is_created_and_its_desk_opened(self, admin: Visitor) -> None:
        name = f"House {next(_numbers)}"
        await admin.goes("/desk/house/organisations")
        await admin.sends("/organisations", name=name)

        assert admin.at.endswith("/team")
        assert admin.says(name)


async def test_a_key_is_made_shown_once_rotated_and_revoked(
    app: App, api: httpx2.AsyncClient, clerk: Visitor, house: DeskHouse
) -> None:
    await clerk.goes(f"{house.path}/keys")
    await clerk.sends("/keys", name="", rights=["money"])
    assert clerk.status == 422
    await clerk.sends("/keys", name="Accounting", rights=["money"])
    found = re.search(r"hfk_\w{44}", clerk.text)
    assert found is not None
    used = await api.get("/api/v1/admin/shows", headers={"Authorization": f"Bearer {found[0]}"})
    assert used.status_code == 200
    await clerk.goes(f"{house.path}/keys")
    assert found[0] not in clerk.text
    await clerk.sends("/rotate")
    assert re.search(r"hfk_\w{44}", clerk.text)
    await clerk.goes(f"{house.path}/keys")
    await clerk.sends("/revoke")

    assert clerk.says("The key is revoked.")
    assert await app.api_keys.keys(house.organisation_id) == []


async def test_a_show_is_hidden_and_published_again(clerk: Visitor, house: DeskHouse) -> None:
    page = f"{house.path}/shows/{house.show_id}"
    await clerk.goes(page)
    await clerk.sends("/publish")
    assert clerk.says("Not published")
    await clerk.goes(house.path)
    assert clerk.says("Not published")
    await clerk.goes(page)
    await clerk.sends("/publish")

    assert clerk.says("On sale")


async def publishes(clerk: Visitor, path: str, **typed: str) -> None:
    """From the list of texts: a preview, then the terms as a new version."""
    await clerk.goes(f"{path}/legal")
    assert clerk.text.count("/legal?text=") == 4
    await clerk.goes(f"{path}/legal?text=terms")
    await send_text(clerk, path, "preview", **typed)
    assert (clerk.status, "<li>no umbrellas</li>" in clerk.text) == (200, True)
    assert "&lt;script&gt;" in clerk.text
    await send_text(clerk, path, "publish", **typed)
    assert clerk.says("Published.")


async def send_text(clerk: Visitor, path: str, act: str, **typed: str) -> None:
    await clerk.goes(f"{path}/legal?text=terms")
    await clerk.sends("/legal", act=act, **{"en": "", "de": "", "hi": "", **typed})


@pytest.mark.parametrize("of", ["organisation", "house"])
async def test_terms_are_previewed_published_and_withdrawn(
    app: App, clerk: Visitor, admin: Visitor, house: DeskHouse, of: str
) -> None:
    who, path, owner = clerk, house.path, house.organisation_id
    if of == "house":
        who, path, owner = admin, "/desk/house", HOUSE
    typed = {"en": "# Rules\r\n\r\n- no <script>\r\n- no umbrellas", "hi": "नियम " * 6000, "de": "Regeln"}

    await publishes(who, path, **typed)
    newest = await app.legal.find(owner, LegalKind.TERMS)
    assert newest.texts["en"] == "# Rules\n\n- no <script>\n- no umbrellas"
    assert set(newest.texts) == {"en", "de", "hi"}
    await send_text(who, path, "publish")
    assert (who.status, who.says("Write the text in at least one language.")) == (422, True)
    await send_text(who, path, "publish", en="x" * 40_001)
    assert (who.status, who.says("40,000 characters at most")) == (422, True)
    await send_text(who, path, "publish", en="Be kind.")
    await who.goes(f"{path}/legal?text=terms")
    assert who.says(f"Version {newest.version + 1}")
    assert f"/legal/terms/{newest.version}" in who.text
    await who.client.post(f"{path}/legal", data={"text": "terms", "act": "withdraw"})
    assert (await app.legal.find(owner, LegalKind.TERMS)).texts == {}
    await who.goes(f"{path}/legal?text=nothing")
    assert who.status == 404


async def test_a_second_factor_is_required_of_members(app: App, clerk: Visitor, house: DeskHouse) -> None:
    await clerk.goes(f"{house.path}/settings")
    assert clerk.says("Not required.")
    await clerk.sends("/settings/second-factor")
    assert (clerk.status, clerk.says("Set up your own second step first.")) == (403, True)

    await give_factor(app, house.organisation_id)
    await clerk.sends("/settings/second-factor")
    assert clerk.says("Required for all members.")
    await clerk.sends("/settings/second-factor")
    assert clerk.says("Not required.")


async def test_a_second_factor_is_required_by_the_house(
    app: App, api: httpx2.AsyncClient, admin: Visitor, site: Application
) -> None:
    session = await app.sessions.load(admin.client.cookies["holdfast"])
    assert session is not None
    (colleague,) = await fans(app, api, 1, Role.ADMIN)
    await admin.goes("/desk/house/settings")
    await admin.sends("/settings/second-factor", required_of="admins")
    assert (admin.status, admin.says("Set up your own second step first.")) == (403, True)

    await give_factor(app, session.account_id)
    await admin.sends("/settings/second-factor", required_of="admins")
    assert admin.says("Saved.")
    try:
        async with a_visitor(site) as other:
            await sit_down(app, other, colleague.account_id)
            await other.goes("/desk/house")
            assert other.at == "/account/security"
        refused = await colleague.get("/admin/accounts")
        assert (refused.status_code, problem(refused)["code"]) == (403, "second_factor_needed")
        await admin.goes("/desk/house/settings")
        assert admin.status == 200
    finally:
        await app.house.require_second_factor(session.account_id, "none")


async def give_factor(app: App, account_id: int) -> None:
    """An authenticator app that is set up."""
    sql = "INSERT INTO totp (account_id, secret, confirmed_at) VALUES ($1, '\\x00', now())"
    await app.postgres.execute(sql, account_id)
