"""/gate: what a device at the door asks. It sees tickets of its own shows, and of people their initials."""

from base64 import b64encode
from typing import Annotated

from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import NoSuchBooking, from_public_id, public_id, reference
from holdfast.catalogue import NoSuchShow
from holdfast.checkin.errors import (
    BadPassCode,
    DeviceTaken,
    NoDevice,
    NoGatePass,
    NothingToUndo,
    ScanIdUsed,
    SearchMax,
)
from holdfast.checkin.every_pod import build_pack, load_counts, search_tickets, upload_scans
from holdfast.checkin.passes import (
    DeviceBody,
    DeviceBound,
    PackPage,
    Passes,
    SignedInDevice,
    SignInBody,
    parse_device_key,
)
from holdfast.checkin.scan import (
    OPENING_VERDICTS,
    CheckInBody,
    CheckInPage,
    CountPage,
    FoundPage,
    FoundTicket,
    UndoBody,
    UploadBody,
    UploadPage,
    Verdict,
    describe_verdict,
    initials,
)
from holdfast.checkin.store import CheckIn, CheckInStore
from holdfast.errors import Invalid
from holdfast.tickets import BadCode, NoSuchTicket
from holdfast.web.audiences import Audience
from holdfast.web.caller import Role
from holdfast.web.responses import answer, query, read, read_off_loop
from holdfast.web.routing import RouteTable, follow_show, get_app, get_caller

NO_STORE = {"Cache-Control": "no-store"}
UPLOAD_BYTES_MAX = 512 * 1024
routes = RouteTable(tag="gate", audience=Audience.ORGANISERS)


class SearchQuery(Struct, forbid_unknown_fields=True, frozen=True):
    q: Annotated[str, Meta(max_length=60)] = (
        ""  # a reference, or the beginning of a name: three letters or more
    )


@routes.post(
    "/gate/login", body=SignInBody, answers={200: SignedInDevice}, refusals=(BadPassCode, DeviceTaken)
)
async def log_in_gate(request: Request) -> Response:
    """Sign a device in with the code of its pass.

    `device_key` is a public key that the device made; the first one to come has the pass. Sign in again with
    the same key before `expires_in` seconds are over. `keys` are ours: keep them to check packs with.
    """
    body = read(SignInBody, await request.body())
    device = await _passes(request).sign_in(body.code, parse_device_key(body.device_key))
    page = SignedInDevice(
        access_token=device.access_token,
        token_type="Bearer",
        expires_in=get_app(request).config.access_ttl_s,
        pass_id=device.pass_id,
        keys=await _keys(request),
    )
    return answer(200, page, NO_STORE)


@routes.post(
    "/gate/device",
    body=DeviceBody,
    answers={200: DeviceBound},
    refusals=(NoGatePass, DeviceTaken),
    role=Role.GATE,
)
async def register_gate_device(request: Request) -> Response:
    """Register the device of a person with passes. Packs are encrypted for it."""
    body = read(DeviceBody, await request.body())
    account_id = get_caller(request).account_id
    await _gate(request).standby(account_id)
    await _passes(request).bind_device(account_id, parse_device_key(body.device_key))
    standby = await _gate(request).standby(account_id)
    return answer(200, DeviceBound(standby.pass_id, await _keys(request)), NO_STORE)


@routes.post(
    "/gate/check-ins",
    body=CheckInBody,
    answers={200: CheckInPage},
    refusals=(NoGatePass, NoSuchTicket, ScanIdUsed),
    role=Role.GATE,
)
async def check_in_ticket(request: Request) -> Response:
    """Scan a ticket.

    The answer is 200 whatever the verdict: admitted, left or refused, with the reason and, for a ticket that
    was used, when and where. Every scan is recorded; the same `scan_id` gets the same answer.
    """
    body = read(CheckInBody, await request.body())
    account_id = get_caller(request).account_id
    if (body.code is None) == (body.ticket is None):
        raise Invalid(field="code", detail="Expected either code or ticket.")
    if body.code is not None:
        await _follow_code(request, account_id, body.code)
        found, code = await _gate(request).scan(account_id, body.scan_id, body.way, body.code)
        named = code.ticket.show_id if code is not None else None
    else:
        place = _place(body.ticket or "")
        await _follow_ticket(request, account_id, place[0])
        found = await _gate(request).admit(account_id, body.scan_id, body.way, place)
        named = place[0]
    return answer(200, await _page(request, found, named), NO_STORE)


@routes.post(
    "/gate/check-ins/{check_in}/undo",
    body=UndoBody,
    answers={200: CheckInPage},
    refusals=(NothingToUndo, ScanIdUsed),
    role=Role.GATE,
)
async def undo_check_in(request: Request) -> Response:
    """Take an admission back: the last thing that happened with the ticket, at most ten minutes ago."""
    body = read(UndoBody, await request.body())
    try:
        show_id, check_in_id = from_public_id(request.path_params["check_in"])
    except NoSuchBooking:
        raise NothingToUndo from None
    account_id = get_caller(request).account_id
    found = await _gate(request).undo(account_id, show_id, check_in_id, body.scan_id)
    return answer(200, await _page(request, found, show_id), NO_STORE)


@routes.post(
    "/gate/uploads",
    body=UploadBody,
    answers={200: UploadPage},
    refusals=(NoGatePass,),
    role=Role.GATE,
    body_bytes_max=UPLOAD_BYTES_MAX,
)
async def upload_check_ins(request: Request) -> Response:
    """Tell what was decided without a network.

    Scans are recorded as they were made. Where two were let in with one ticket, the first by the devices'
    clocks is the first; the other is raised as a conflict. The same `scan_id` is recorded once.
    """
    body = await read_off_loop(UploadBody, await request.body())
    if any(scan.verdict is Verdict.UNDONE for scan in body.scans):
        raise Invalid(field="scans", detail="An undo needs a network: it cannot be uploaded later.")
    done = await upload_scans(get_app(request), get_caller(request).account_id, body.scans)
    return answer(200, UploadPage(done, sum(one.conflict is not None for one in done)), NO_STORE)


@routes.get("/gate/counts", answers={200: CountPage}, refusals=(NoGatePass, NoSuchShow), role=Role.GATE)
async def get_gate_counts(request: Request) -> Response:
    """How many came in where, for the shows of this pass."""
    standby = await _gate(request).standby(get_caller(request).account_id)
    return answer(200, CountPage(await load_counts(get_app(request), standby.show_ids)), NO_STORE)


@routes.get(
    "/gate/search",
    query=SearchQuery,
    answers={200: FoundPage},
    refusals=(NoGatePass, SearchMax),
    role=Role.GATE,
)
async def search_gate_tickets(request: Request) -> Response:
    """Find tickets of these shows by booking reference or name, when a phone is flat. A few a minute."""
    parameters = query(SearchQuery, request)
    if len(parameters.q.strip()) < 3:
        raise Invalid(field="q", detail="Expected three letters or more.")
    standby = await _gate(request).standby(get_caller(request).account_id)
    found = []
    for ticket, name in await search_tickets(get_app(request), standby, parameters.q):
        layout = (await get_app(request).catalogue.show_on_sale(ticket.show_id)).layout
        found.append(
            FoundTicket(
                ticket_id=ticket.ticket_id,
                show_id=ticket.show_id,
                reference=reference(ticket.show_id, ticket.number),
                seat=layout.labels[ticket.seat],
                initials=initials(name),
                standing=ticket.worth,
            )
        )
    return answer(200, FoundPage(found), NO_STORE)


@routes.get("/gate/pack", answers={200: PackPage}, refusals=(NoGatePass, NoDevice), role=Role.GATE)
async def get_gate_pack(request: Request) -> Response:
    """Everything a gate needs to work without a network, signed and sealed for this device."""
    standby = await _gate(request).standby(get_caller(request).account_id)
    raw = await build_pack(get_app(request), standby)
    return answer(200, PackPage(standby.pass_id, b64encode(raw).decode()), NO_STORE)


async def _follow_code(request: Request, account_id: int, text: str) -> None:
    app = get_app(request)
    if app.router.has_pods:
        try:
            named = (await app.tickets.read(text)).ticket.show_id
        except BadCode:
            named = None
        await _follow_ticket(request, account_id, named)


async def _follow_ticket(request: Request, account_id: int, named: int | None) -> None:
    """To the pod of the show under which the scan is written: the ticket's, if the pass is for it."""
    app = get_app(request)
    if app.router.has_pods:
        show_id = await app.checkin.show_of_scan(account_id, named)
        if show_id is not None:
            follow_show(request, show_id)


def _gate(request: Request) -> CheckInStore:
    store: CheckInStore = get_app(request).checkin
    return store


def _passes(request: Request) -> Passes:
    return get_app(request).passes


async def _keys(request: Request) -> dict[str, str]:
    keys = await get_app(request).tickets.keys()
    good = [key for key in keys.values() if not key.is_revoked]
    return {str(key.key_id): b64encode(key.public).decode() for key in good}


def _place(text: str) -> tuple[int, int]:
    try:
        return from_public_id(text)
    except NoSuchBooking:
        raise NoSuchTicket from None


async def _page(request: Request, found: CheckIn, named: int | None) -> CheckInPage:
    """`named` is the show that the ticket names. Other organisers' tickets get no more details."""
    is_refused = found.verdict not in (*OPENING_VERDICTS, Verdict.UNDONE)
    seat = section = category = number = other = None
    if found.seat is not None:
        layout = (await get_app(request).catalogue.show_on_sale(found.show_id)).layout
        words = layout.seat(found.seat)
        seat, section, category = words.label, words.section, layout.categories[words.category].name
        number = reference(found.show_id, found.number or 0)
    elif found.verdict is Verdict.WRONG_SHOW and named is not None:
        try:
            show = await get_app(request).catalogue.show_on_sale(named)
            other = f"{show.title}, {show.starts_at:%Y-%m-%d %H:%M} UTC"
        except NoSuchShow:
            other = None
    return CheckInPage(
        verdict="refused" if is_refused else found.verdict,
        words=describe_verdict(found.verdict, is_suspended=found.is_suspended),
        is_suspended=found.is_suspended,
        check_in_id=public_id(found.show_id, found.check_in_id),
        gate=found.gate,
        scanned_at=found.scanned_at,
        reason=found.verdict if is_refused else None,
        show_id=found.show_id if found.seat is not None else None,
        seat=seat,
        section=section,
        category=category,
        reference=number,
        first_at=found.first_at,
        first_gate=found.first_gate,
        other_show=other,
    )


ROUTES = routes.all
