"""Holdfast's buyers. By API: accounts that are signed in. In the shop: a new guest each time, no scripts."""

import json

from bench.peers.client import Client, Response, UnexpectedResponse, expect, path_in
from bench.peers.plan import Outcome, Place, Plan

PAY = b'{"method":"tok_ok"}'
GUEST = {"name": "Asha Rao", "email": "asha@example.com"}


async def hold_by_api(client: Client, place: Place, plan: Plan) -> Outcome:
    response = await _post_hold(client, place, plan)
    return Outcome.DONE if response.status == 201 else Outcome.TAKEN


async def buy_by_api(client: Client, place: Place, plan: Plan) -> Outcome:
    """Hold, then pay: the sandbox gateway charges over HTTP before the response."""
    response = await _post_hold(client, place, plan)
    if response.status == 409:
        return Outcome.TAKEN
    booking = json.loads(response.body)["booking_id"]
    paid = await client.post_json(f"/api/v1/bookings/{booking}/pay", PAY, _authorise(place, plan))
    state = json.loads(expect(paid, 200).body)["state"]
    if state != "confirmed":
        raise UnexpectedResponse(f"the booking is {state} after its payment")
    return Outcome.DONE


async def hold_in_shop(client: Client, place: Place, plan: Plan) -> Outcome:
    client.cookies = {}
    return Outcome.DONE if await _submit_seats(client, place) else Outcome.TAKEN


async def buy_in_shop(client: Client, place: Place, plan: Plan) -> Outcome:
    """The pages that a buyer of free tickets loads: the show, the held seats, the tickets."""
    client.cookies = {}
    expect(await client.get(f"/shows/{place.hall.event}"), 200)
    booking = await _submit_seats(client, place)
    if not booking:
        return Outcome.TAKEN
    expect(await client.get(booking), 200)
    page = await client.follow(expect(await client.post_form(f"{booking}/pay", GUEST), 303))
    if b"tickets.pdf" not in expect(page, 200).body:
        raise UnexpectedResponse("the page of the booking has no tickets")
    return Outcome.DONE


async def _post_hold(client: Client, place: Place, plan: Plan) -> Response:
    body = json.dumps({"seats": place.seats}).encode()
    path = f"/api/v1/shows/{place.hall.event}/holds"
    return expect(await client.post_json(path, body, _authorise(place, plan)), 201, 409)


async def _submit_seats(client: Client, place: Place) -> str:
    """The path of the booking's page; empty: the seats are taken."""
    response = await client.post_form(f"/shows/{place.hall.event}/hold", {"seats": place.seats})
    return path_in(response.header("location")) if expect(response, 303, 409).status == 303 else ""


def _authorise(place: Place, plan: Plan) -> dict[str, str]:
    return {"Authorization": f"Bearer {plan.secrets[place.number % len(plan.secrets)]}"}
