"""/shows/{show}/queue: a place in the waiting room of a show, from before it opens until it is used.

The page is private: it shows the visitor's own place. A script on it follows the public status of the room,
which is the same for everybody and cached; without scripts the page loads itself again.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import Session
from holdfast.errors import Refusal
from holdfast.holds import get_party
from holdfast.site.cookies import get_session
from holdfast.site.guests import current_or_new_guest, with_cookies
from holdfast.site.pages import (
    NO_STORE,
    EmptyForm,
    get_localiser,
    read_form,
    redirect,
    render_page,
    require_session,
    set_admission_header,
    wants_json,
)
from holdfast.site.queue_view import QueuePhase, QueueView, describe_place
from holdfast.waitingroom import Joiner, Place
from holdfast.web.problems import render_refusal
from holdfast.web.puzzles import ProofNeeded
from holdfast.web.responses import answer, query
from holdfast.web.routing import RouteTable, get_app

if TYPE_CHECKING:
    from holdfast.app import App

routes = RouteTable(tag="site", prefix="/shows/{show:int}", bare=True)


class JoinForm(Struct):
    proof: Annotated[str, Meta(max_length=200)] = ""


class QueueQuery(Struct):
    left: str = ""


class PlaceStatus(Struct, frozen=True):
    """For the page's script: load the page again when `phase` changes, or the place did."""

    phase: QueuePhase
    position: int | None
    ahead: int
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class FormProblem:
    """What the page says about a form that was refused."""

    text: str
    status: int
    puzzle: str = ""  # of ProofNeeded: waiting solves it


@routes.get("/queue")
async def get_queue(request: Request) -> Response:
    """My place in the queue, or how to get one."""
    session = await get_session(request)
    if not wants_json(request):
        return await _render(request, session)
    view = await _load_view(get_app(request), _show_id(request), session)
    if view is None:
        return answer(200, {"phase": QueuePhase.OPEN}, {"Cache-Control": NO_STORE})
    position = view.mine.position if view.mine is not None else None
    return answer(
        200, PlaceStatus(view.phase, position, view.ahead, view.ends_at), {"Cache-Control": NO_STORE}
    )


@routes.post("/queue")
async def post_queue(request: Request) -> Response:
    """Joins. Without a session a guest account is created: no sign-up is needed."""
    data, show_id = await read_form(request, JoinForm), _show_id(request)
    session, cookies = await current_or_new_guest(request)
    joiner = Joiner(
        session.account_id,
        is_guest=session.is_guest,
        party=get_party(request) if session.is_guest else "",
        proof=data.proof,
    )
    try:
        await get_app(request).waiting_rooms.join(show_id, joiner)
    except Refusal as refusal:
        if wants_json(request):
            return with_cookies(render_refusal(refusal, request.state.request_id), cookies)
        return with_cookies(await _render(request, session, _describe(request, refusal)), cookies)
    go = f"/shows/{show_id}/queue"
    if wants_json(request):
        return with_cookies(answer(200, {"go": go}, {"Cache-Control": NO_STORE}), cookies)
    return redirect(go, *cookies)


@routes.post("/queue/enter")
async def post_enter(request: Request) -> Response:
    """Uses my turn: the admission goes into a cookie, and the seats may be chosen."""
    await read_form(request, EmptyForm)
    session, show_id = await require_session(request), _show_id(request)
    try:
        admission = await get_app(request).waiting_rooms.redeem(show_id, session.account_id)
    except Refusal as refusal:
        return await _render(request, session, _describe(request, refusal))
    return redirect(f"/shows/{show_id}", set_admission_header(request, admission.text))


@routes.post("/queue/leave")
async def post_leave(request: Request) -> Response:
    """Gives my place up."""
    await read_form(request, EmptyForm)
    session, show_id = await get_session(request), _show_id(request)
    if session is not None:
        await get_app(request).waiting_rooms.leave(show_id, session.account_id)
    return redirect(f"/shows/{show_id}/queue?left=yes")


async def _render(request: Request, session: Session | None, problem: FormProblem | None = None) -> Response:
    app, show_id, l10n = get_app(request), _show_id(request), get_localiser(request)
    await app.catalogue.public_show(show_id)  # a draft has no page
    row = await app.catalogue.show_detail(show_id)
    view = await _load_view(app, show_id, session)
    if view is None:  # without a waiting room
        return redirect(f"/shows/{show_id}")
    return render_page(
        request,
        "queue/queue.html",
        status=problem.status if problem is not None else 200,
        view=view,
        row=row,
        zone=row["timezone"],
        here=f"/shows/{show_id}/queue",
        texts=describe_place(view, l10n),
        script=view.script(l10n),
        problem=problem,
        has_left=bool(query(QueueQuery, request).left) and not view.has_place,
        is_guest=session is None or session.is_guest,
        session=session,
    )


async def _load_view(app: "App", show_id: int, session: Session | None) -> QueueView | None:
    """None: the show has no waiting room."""
    status = await app.waiting_rooms.status(show_id)
    if status is None:
        return None
    mine: Place | None = None
    if session is not None:
        mine = await app.waiting_rooms.find_place(show_id, session.account_id)
    return QueueView(status, mine)


def _describe(request: Request, refusal: Refusal) -> FormProblem:
    l10n, details = get_localiser(request), refusal.details
    if isinstance(refusal, ProofNeeded):
        text = l10n.t("queue.wait_proof", seconds=details["retry_after_s"])
        return FormProblem(text, refusal.status, str(details["puzzle"]))
    name = f"problems.{refusal.code}"
    text = l10n.t(name) if l10n.has(name) else str(details.get("detail") or refusal.title)
    return FormProblem(text, refusal.status)


def _show_id(request: Request) -> int:
    return int(request.path_params["show"])


ROUTES = routes.all
