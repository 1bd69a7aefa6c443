"""Routes: the invoice of a booking as PDF for its owner, and the seller that is printed on it."""

from starlette.requests import Request
from starlette.responses import Response

from holdfast.bookings import Booking, NoSuchBooking, from_public_id, reference
from holdfast.errors import Busy
from holdfast.invoices.errors import NoInvoice, NoSeller
from holdfast.invoices.invoices import Invoice, Invoices, SellerBody
from holdfast.tickets import typeface_for
from holdfast.web.caller import Right, Role
from holdfast.web.responses import answer, read
from holdfast.web.routing import RouteTable, get_app, get_caller, get_scope

NO_STORE = {"Cache-Control": "no-store"}
ATTACHED = {"Content-Disposition": 'inline; filename="invoice.pdf"', "X-Content-Type-Options": "nosniff"}
routes = RouteTable(tag="admin")


@routes.get(
    "/bookings/{booking}/invoice.pdf",
    tag="payments",
    answers={200: bytes},
    refusals=(NoSuchBooking, NoInvoice, Busy),
    media_types=("application/pdf",),
    role=Role.FAN,
)
async def get_invoice_pdf(request: Request) -> Response:
    """The invoice for a booking that was paid for, and a credit note for all that came back since.

    Numbers are the organiser's, one after the other. The same request returns the same documents again.
    """
    show_id, number = from_public_id(request.path_params["booking"])
    booking = await get_app(request).bookings.load_owned(get_caller(request).account_id, show_id, number)
    return await invoice_answer(request, booking)


async def invoice_answer(request: Request, booking: Booking) -> Response:
    """The papers of a booking whose owner is asking."""
    papers = await _invoices(request).issue(booking.show_id, booking.number)
    if not papers:
        raise NoInvoice(state=booking.state)
    file = await _printed(request, booking, papers)
    return Response(file, 200, {**NO_STORE, **ATTACHED}, "application/pdf")


@routes.get(
    "/admin/invoices/seller",
    answers={200: SellerBody},
    refusals=(NoSeller,),
    role=Role.ORGANISER,
    right=Right.SETTINGS,
)
async def get_invoice_seller(request: Request) -> Response:
    """The seller of your tickets, as printed on invoices."""
    seller = await _invoices(request).seller(get_scope(request).owner_id)
    if seller is None:
        raise NoSeller
    return answer(200, seller, NO_STORE)


@routes.put(
    "/admin/invoices/seller",
    body=SellerBody,
    answers={200: SellerBody},
    role=Role.ORGANISER,
    right=Right.SETTINGS,
)
async def set_invoice_seller(request: Request) -> Response:
    """Set the seller of your tickets: name, address and tax number on future invoices."""
    body = read(SellerBody, await request.body())
    await _invoices(request).set_seller(get_scope(request).owner_id, body)
    return answer(200, body, NO_STORE)


async def _printed(request: Request, booking: Booking, papers: list[Invoice]) -> bytes:
    # Here, not above: 20 MB that a process which only sells does not need.
    from holdfast.invoices.pdf import InvoiceSubject, collect_texts, render_pdf

    app = get_app(request)
    occasion = await app.tickets.occasion(booking.show_id)
    layout = (await app.catalogue.show_on_sale(booking.show_id)).layout
    account = await app.accounts.account(booking.owner_id)
    sold = InvoiceSubject(
        title=occasion.title,
        when=f"{occasion.when} ({occasion.timezone}), {occasion.venue}",
        labels={seat: layout.seat(seat).label for paper in papers for seat in paper.seats},
        reference=reference(booking.show_id, booking.number),
        owner=account.name if account else "",
    )

    def draw() -> bytes:
        return render_pdf(papers, sold, typeface_for(collect_texts(papers, sold)))

    file: bytes = await app.tickets.printer.run(draw)
    return file


def _invoices(request: Request) -> Invoices:
    return get_app(request).invoices


ROUTES = routes.all
