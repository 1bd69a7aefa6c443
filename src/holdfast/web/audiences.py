"""The API has one OpenAPI document for each kind of user, so that each of them stays small. No I/O.

An operation is in exactly one document. Its role decides which (`BY_ROLE`), unless the table that declares
the route names an audience: `RouteTable(tag="gate", audience=Audience.ORGANISERS)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from holdfast.web.caller import Role


class Audience(StrEnum):
    FANS = "fans"  # and programs that sell to them: what needs no rights of staff
    ORGANISERS = "organisers"  # members of organisations, their programs, scanners at the door
    HOUSE = "house"  # administrators


BY_ROLE: Mapping[Role | None, Audience] = {
    None: Audience.FANS,
    Role.FAN: Audience.FANS,
    Role.ORGANISER: Audience.ORGANISERS,
    Role.GATE: Audience.ORGANISERS,
    Role.ADMIN: Audience.HOUSE,
}


@dataclass(frozen=True, slots=True)
class About:
    """What a document says about itself."""

    path: str
    title: str
    intro: str
    tags: Mapping[str, str]

    @property
    def description(self) -> str:
        return f"{self.intro}\n\n{CONVENTIONS}"


CONVENTIONS = """\
JSON in snake_case, times in RFC 3339 UTC, money in minor units.

Every error is a problem+json (RFC 9457) with a stable `code`; its `type` links to a page that explains it.
Send an `Idempotency-Key` with every POST: a retry with the same key acts once and gets the same response.
PUT, PATCH and DELETE need none: repeated, they have the same effect.
Every response has an `X-Request-Id`: the id under which our logs have the request.
"""
DOCUMENTS = {
    Audience.FANS: About(
        "/api/v1/openapi.json",
        "Holdfast",
        "Browse events, hold seats, pay, get tickets. Other documents: "
        "[for organisers](/api/v1/openapi-organisers.json), [for the house](/api/v1/openapi-house.json).",
        {
            "queue": "The waiting room of a show: join, follow your place, redeem your turn, check the draw.",
            "sale": "Hold seats, extend a hold, list and cancel bookings.",
            "payments": "Pay a booking, follow the payment, get refund quotes and invoices.",
            "tickets": "Tickets of a booking: codes, PDF, calendar entry, transfer to another person.",
            "seat map": "Layout and live state of a show's seats.",
            "catalogue": "Cities, venues, events and shows that are on sale; the house and its legal texts.",
            "search": "Search by words, place, date and price; suggestions while typing.",
            "accounts": "Accounts: sign up, sign in, second factors, sessions, your data.",
        },
    ),
    Audience.ORGANISERS: About(
        "/api/v1/openapi-organisers.json",
        "Holdfast for organisers",
        "Work for an organisation: events, prices, bookings, refunds, the door, members, keys, webhooks. "
        "Send an API key, or the token of a member: how to sign in is in the "
        "[document for fans](/api/v1/openapi.json). Another is [for the house](/api/v1/openapi-house.json).",
        {
            "admin": "Venues, layouts, events, shows, prices, blocks, gate passes, bookings, refunds, "
            "reports; the organisation, its members, keys and webhooks.",
            "payments": "Chargebacks.",
            "gate": "Check-in at the door, for scanners with a gate pass.",
            "notifications": "E-mails and text messages to buyers: preview and sender.",
            "accounts": "The organisations of an account; accept and decline invitations.",
        },
    ),
    Audience.HOUSE: About(
        "/api/v1/openapi-house.json",
        "Holdfast for the house",
        "Administer the house. What admins do for an organisation is in the "
        "[document for organisers](/api/v1/openapi-organisers.json); how to sign in is in the "
        "[document for fans](/api/v1/openapi.json).",
        {
            "admin": "Organisations, cities, the house itself and its legal texts.",
            "accounts": "Find, create, ban and reset accounts; export and erase personal data.",
            "payments": "Webhooks of gateways, differences between their books and ours.",
            "notifications": "Messages that were sent or failed.",
        },
    ),
}
# All operations in one: not served, too large for a page. `holdfast openapi` prints it.
WHOLE = About(
    "",
    "Holdfast",
    "Browse events, hold seats, pay, get tickets; work for an organisation; administer the house.",
    {tag: text for one in reversed(DOCUMENTS.values()) for tag, text in one.tags.items()},
)
