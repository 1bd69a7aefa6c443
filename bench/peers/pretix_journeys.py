"""pretix' buyers. By API: an application with a token. In the shop: a new guest each time.

The shop puts seats into the cart, and creates the order, in a Celery task. Its page asks for the result after
0.1 s and then every 0.25 s; so do these buyers.
"""

import asyncio
import json
from typing import Any

from bench.peers.client import Client, Response, UnexpectedResponse, expect, path_in
from bench.peers.plan import Outcome, Place, Plan

CSRF_COOKIE = "pretix_csrftoken"
FIRST_LOOK_S, NEXT_LOOK_S = 0.1, 0.25  # static/pretixbase/js/asynctask.js
LOCK_FAILED = 409
PRICE = "15.00"
EMAIL = "asha@example.com"
# What a browser sends of the form with the address when only the e-mail address is filled in.
CONTACT: dict[str, str | list[str]] = {"email": EMAIL, "country": "DE", "transmission_type": "-"}


async def hold_by_api(client: Client, place: Place, plan: Plan) -> Outcome:
    """Two positions of a cart in one request: all that the API offers for several seats at once."""
    wanted = [{"item": int(place.hall.item), "seat": seat, "price": PRICE} for seat in place.seats]
    path = f"{api_path(plan, place)}/cartpositions/bulk_create/"
    response = await client.post_json(path, json.dumps(wanted).encode(), _authorise(plan))
    if response.status == LOCK_FAILED:
        return Outcome.BUSY
    held = [result["success"] for result in json.loads(expect(response, 200).body)["results"]]
    if len(set(held)) != 1:
        raise UnexpectedResponse(f"one seat of two was held: {response.body[:300]!r}")
    return Outcome.DONE if held[0] else Outcome.TAKEN


async def buy_by_api(client: Client, place: Place, plan: Plan) -> Outcome:
    """One request that creates a paid order: no cart, no mail, and the manual payment provider."""
    positions = [{"item": int(place.hall.item), "seat": seat, "price": PRICE} for seat in place.seats]
    order = {
        "status": "p",
        "payment_provider": "manual",
        "email": EMAIL,
        "locale": "en",
        "sales_channel": "web",
        "send_email": False,
        "positions": positions,
    }
    path = f"{api_path(plan, place)}/orders/"
    response = await client.post_json(path, json.dumps(order).encode(), _authorise(plan))
    if response.status == LOCK_FAILED:
        return Outcome.BUSY
    if response.status == 400 and b"not available" in response.body:
        return Outcome.TAKEN
    if json.loads(expect(response, 201).body)["status"] != "p":
        raise UnexpectedResponse("the order is not paid")
    return Outcome.DONE


async def hold_in_shop(client: Client, place: Place, plan: Plan) -> Outcome:
    """The cookie against forged forms is from an earlier page; session and cart are new."""
    client.cookies = {CSRF_COOKIE: plan.facts["csrf"]}
    return await _add_to_cart(client, place, plan)


async def buy_in_shop(client: Client, place: Place, plan: Plan) -> Outcome:
    """The pages that a buyer of free tickets loads: event, e-mail address, review, order."""
    client.cookies = {CSRF_COOKIE: plan.facts["csrf"]}
    shop = shop_path(plan, place)
    expect(await client.get(f"{shop}/"), 200)
    outcome = await _add_to_cart(client, place, plan)
    if outcome is not Outcome.DONE:
        return outcome
    expect(await client.follow(await client.get(f"{shop}/checkout/start")), 200)
    contact = _with_token(client, CONTACT)
    sent = expect(await client.post_form(f"{shop}/checkout/questions/", contact), 302)
    if not path_in(sent.header("location")).startswith(f"{shop}/checkout/confirm/"):
        raise UnexpectedResponse(f"the checkout went on to {sent.header('location')}")
    expect(await client.follow(sent), 200)
    form = _with_token(client, {"ajax": "1"})
    ordered = await _wait_for_task(client, await client.post_form(f"{shop}/checkout/confirm/", form))
    if not ordered.get("success"):
        raise UnexpectedResponse(f"the order failed: {ordered.get('message')}")
    expect(await client.get(path_in(ordered["redirect"])), 200)
    return Outcome.DONE


async def _add_to_cart(client: Client, place: Place, plan: Plan) -> Outcome:
    form = _with_token(client, {f"seat_{place.hall.item}": place.seats, "ajax": "1"})
    response = await client.post_form(f"{shop_path(plan, place)}/cart/add", form)
    added = await _wait_for_task(client, response)
    if added.get("success"):
        return Outcome.DONE
    message = str(added.get("message"))
    if "busy" in message:
        return Outcome.BUSY
    if "available" in message or "taken" in message:
        return Outcome.TAKEN
    raise UnexpectedResponse(f"the cart refused the seats: {message}")


async def _wait_for_task(client: Client, response: Response) -> dict[str, Any]:
    """What the task has found, as soon as the page's script would know."""
    found: dict[str, Any] = json.loads(expect(response, 200).body)
    check, pause_s = found.get("check_url", ""), FIRST_LOOK_S
    while not found.get("redirect"):
        await asyncio.sleep(pause_s)
        found = json.loads(expect(await client.get(check), 200).body)
        pause_s = NEXT_LOOK_S
    return found


def _with_token(client: Client, form: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
    return {"csrfmiddlewaretoken": client.cookies[CSRF_COOKIE], **form}


def _authorise(plan: Plan) -> dict[str, str]:
    return {"Authorization": f"Token {plan.secrets[0]}"}


def api_path(plan: Plan, place: Place) -> str:
    return f"/api/v1/organizers/{plan.facts['organizer']}/events/{place.hall.event}"


def shop_path(plan: Plan, place: Place) -> str:
    return f"/{plan.facts['organizer']}/{place.hall.event}"
