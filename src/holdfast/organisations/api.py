"""/organisations, /me/organisations, /invitations: who works for an organisation, and with which rights."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import SecondFactorNeeded
from holdfast.organisations.errors import (
    AlreadyAMember,
    InvitationsMax,
    LastOwner,
    MembersMax,
    NoSuchInvitation,
    NoSuchMember,
    RightsTooHigh,
)
from holdfast.organisations.invitations import Invitations
from holdfast.organisations.organisation import (
    InvitationList,
    InvitationPage,
    MemberList,
    MemberPage,
    MyOrganisation,
    MyOrganisations,
    NewInvitation,
    NewOrganisation,
    NewOwner,
    OrganisationList,
    OrganisationPage,
    OrganisationsQuery,
    RightsBody,
    SecondFactorRule,
    TokenBody,
)
from holdfast.organisations.store import OWNER_ONLY, Organisations
from holdfast.web.audiences import Audience
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, query, read
from holdfast.web.routing import RouteTable, get_app, get_caller, get_scope

NO_STORE = {"Cache-Control": "no-store"}
ONE = "/organisations/{organisation:int}"
MEMBER = ONE + "/members/{account:int}"
house = RouteTable(tag="admin", prefix="/admin/organisations", role=Role.ADMIN)
routes = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.SETTINGS)
members = RouteTable(tag="admin", role=Role.ORGANISER, right=Right.SETTINGS, for_people=True)
people = RouteTable(tag="accounts", role=Role.FAN, audience=Audience.ORGANISERS)


@house.post(body=NewOrganisation, answers={201: OrganisationPage})
async def create_organisation(request: Request) -> Response:
    """Create an organisation. You are its owner until you make another member the owner."""
    new = read(NewOrganisation, await request.body())
    return answer(201, await _organisations(request).create(new.name, get_caller(request).account_id))


@house.get(query=OrganisationsQuery, answers={200: OrganisationList})
async def list_organisations(request: Request) -> Response:
    """All organisations by name; `q` filters by the beginning of a word."""
    total, found = await _organisations(request).all(query(OrganisationsQuery, request))
    return answer(200, OrganisationList(total, found), NO_STORE)


@people.get("/me/organisations", answers={200: MyOrganisations})
async def list_my_organisations(request: Request) -> Response:
    """The organisations you work for, and your rights there.

    In one, you need to say nothing. In several, send the id of the one that a request is for as
    `Holdfast-Organisation`.
    """
    found = await _organisations(request).mine(get_caller(request).account_id)
    return answer(200, MyOrganisations(found), NO_STORE)


@routes.get(ONE, answers={200: OrganisationPage}, right=Right.MEMBER)
async def get_organisation(request: Request) -> Response:
    """One of your organisations."""
    return answer(200, await _organisations(request).organisation(_id(request)), NO_STORE)


@routes.patch(ONE, body=NewOrganisation, answers={200: OrganisationPage})
async def update_organisation(request: Request) -> Response:
    """Rename an organisation."""
    new = read(NewOrganisation, await request.body())
    return answer(200, await _organisations(request).rename(_id(request), new.name), NO_STORE)


@members.put(
    ONE + "/second-factor",
    body=SecondFactorRule,
    answers={200: OrganisationPage},
    refusals=(SecondFactorNeeded,),
    right=Right.OWNER,
)
async def require_second_factor(request: Request) -> Response:
    """Decide whether members need a second factor. Without one: `second_factor_needed`."""
    rule = read(SecondFactorRule, await request.body())
    page = await _organisations(request).require_second_factor(get_scope(request), required=rule.required)
    return answer(200, page, NO_STORE)


@members.get(ONE + "/members", answers={200: MemberList}, right=Right.MEMBER)
async def list_members(request: Request) -> Response:
    """Who works for the organisation, and with which rights."""
    return answer(200, MemberList(await _organisations(request).members(_id(request))), NO_STORE)


@members.patch(
    MEMBER, body=RightsBody, answers={200: MemberPage}, refusals=(NoSuchMember, RightsTooHigh, LastOwner)
)
async def update_member(request: Request) -> Response:
    """Change the rights of a member. You can give and take away only rights that you have.

    `owner` includes all others; an owner who is changed to less stops being one, unless there is no other.
    Takes effect within seconds in every process.
    """
    body = read(RightsBody, await request.body())
    rights = OWNER_ONLY if "owner" in body.rights else [str(one) for one in dict.fromkeys(body.rights)]
    account_id = request.path_params["account"]
    return answer(200, await _organisations(request).set_rights(get_scope(request), account_id, rights))


@members.delete(MEMBER, answers={204: None}, refusals=(NoSuchMember, RightsTooHigh, LastOwner))
async def remove_member(request: Request) -> Response:
    """Remove a member. What they created stays; their passes at the door end at once."""
    await _organisations(request).remove(get_scope(request), request.path_params["account"])
    return answer(204)


@members.post(ONE + "/leave", answers={204: None}, refusals=(NoSuchMember, LastOwner), right=Right.MEMBER)
async def leave_organisation(request: Request) -> Response:
    """Leave an organisation. Its only owner makes another member the owner first."""
    scope = get_scope(request)
    await _organisations(request).remove(scope, scope.account_id)
    return answer(204)


@members.post(
    ONE + "/owner", body=NewOwner, answers={200: MemberPage}, refusals=(NoSuchMember,), right=Right.OWNER
)
async def transfer_ownership(request: Request) -> Response:
    """Make another member the owner. You stay a member with all other rights."""
    new = read(NewOwner, await request.body())
    return answer(200, await _organisations(request).transfer(get_scope(request), new.account_id), NO_STORE)


@members.post(
    ONE + "/invitations",
    body=NewInvitation,
    answers={201: InvitationPage},
    refusals=(AlreadyAMember, RightsTooHigh, MembersMax, InvitationsMax),
)
async def create_invitation(request: Request) -> Response:
    """Invite a person by e-mail. The link in the mail works once, for seven days.

    Inviting the same address again replaces the earlier invitation.
    """
    new = read(NewInvitation, await request.body())
    return answer(201, await _invitations(request).invite(get_scope(request), new), NO_STORE)


@members.get(ONE + "/invitations", answers={200: InvitationList})
async def list_invitations(request: Request) -> Response:
    """Invitations that were not accepted yet, newest first."""
    return answer(200, InvitationList(await _invitations(request).list_open(_id(request))), NO_STORE)


@members.post(
    ONE + "/invitations/{invitation:int}/resend",
    answers={201: InvitationPage},
    refusals=(NoSuchInvitation, RightsTooHigh, MembersMax, InvitationsMax, AlreadyAMember),
)
async def resend_invitation(request: Request) -> Response:
    """Send an invitation again. It gets a new id and seven new days; the link in the first mail ends."""
    again = await _invitations(request).send_again(get_scope(request), request.path_params["invitation"])
    return answer(201, again, NO_STORE)


@members.delete(ONE + "/invitations/{invitation:int}", answers={204: None}, refusals=(NoSuchInvitation,))
async def withdraw_invitation(request: Request) -> Response:
    """Withdraw an invitation: its link stops working."""
    await _invitations(request).withdraw(_id(request), request.path_params["invitation"])
    return answer(204)


@people.post(
    "/invitations/accept",
    body=TokenBody,
    answers={200: MyOrganisation},
    refusals=(NoSuchInvitation, AlreadyAMember, MembersMax),
)
async def accept_invitation(request: Request) -> Response:
    """Accept an invitation with the token of its link. The account you are signed in to becomes a member."""
    body = read(TokenBody, await request.body())
    joined = await _invitations(request).accept(body.token, get_caller(request).account_id)
    return answer(200, joined, NO_STORE)


@people.post(
    "/invitations/decline", body=TokenBody, answers={204: None}, refusals=(NoSuchInvitation,), role=None
)
async def decline_invitation(request: Request) -> Response:
    """Decline an invitation: its link stops working. No account is needed."""
    await _invitations(request).decline(read(TokenBody, await request.body()).token)
    return answer(204)


def _id(request: Request) -> int:
    organisation_id: int = request.path_params["organisation"]
    return organisation_id


def _organisations(request: Request) -> Organisations:
    return get_app(request).organisations


def _invitations(request: Request) -> Invitations:
    return get_app(request).invitations


ROUTES = (*house.all, *routes.all, *members.all, *people.all)
