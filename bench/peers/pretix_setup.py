"""Run by pretix' own Python: an organizer with an API token, and halls with numbered seats.

python pretix_setup.py < WISH prints {"token": …, "halls": {kind: [{"event": …, "item": …}]}}. The wish has
the rows and seats of a hall, and for each kind of hall a price and how many of them. Seats are sold from an
unlimited quota: then pretix locks the seats only, which is its fastest way.
"""

import json
import os
import sys
from datetime import timedelta
from typing import Any

ORGANIZER, LISTING = "peers", "listing"  # slugs
CATEGORY = "Standard"
PLUGINS = "pretix.plugins.manualpayment,pretix.plugins.ticketoutputpdf"


def render_plan(rows: list[list[str]]) -> dict[str, Any]:
    """A seating plan of one zone; the seats are identified by Holdfast's labels."""
    return {
        "name": "Hall",
        "size": {"width": 1000, "height": 1000},
        "categories": [{"name": CATEGORY, "color": "#0072B2"}],
        "zones": [
            {
                "name": "Stalls",
                "position": {"x": 0, "y": 0},
                "rows": [_render_row(number, labels) for number, labels in enumerate(rows)],
            }
        ],
    }


def _render_row(number: int, labels: list[str]) -> dict[str, Any]:
    return {
        "row_number": labels[0].partition("-")[0],
        "row_number_position": "both",
        "position": {"x": 0, "y": 30 * number},
        "seats": [
            {
                "seat_guid": label,
                "seat_number": label.partition("-")[2],
                "position": {"x": 30 * place, "y": 0},
                "category": CATEGORY,
            }
            for place, label in enumerate(labels)
        ],
    }


def create_all(wish: dict[str, Any]) -> dict[str, Any]:
    from django_scopes import scope  # type: ignore[import-not-found]
    from pretix.base.models import Organizer, SeatingPlan, Team  # type: ignore[import-not-found]

    organizer = Organizer.objects.create(name="Peers", slug=ORGANIZER)
    with scope(organizer=organizer):
        team = Team.objects.create(
            organizer=organizer,
            name="Bench",
            all_events=True,
            all_event_permissions=True,
            all_organizer_permissions=True,
        )
        token = team.tokens.create(name="bench").token
        layout = json.dumps(render_plan(wish["rows"]))
        plan = SeatingPlan.objects.create(organizer=organizer, name="Hall", layout=layout)
        halls = {
            kind: [create_hall(organizer, plan, f"{kind}{i}", each["price"]) for i in range(each["count"])]
            for kind, each in wish["kinds"].items()
        }
        create_listing(organizer, LISTING)
    return {"token": token, "halls": halls}


def create_hall(organizer: Any, plan: Any, slug: str, price: str) -> dict[str, str]:
    from pretix.base.services.seating import generate_seats  # type: ignore[import-not-found]

    event = create_event(organizer, slug, seating_plan=plan)
    item = event.items.create(name="Seat", default_price=price, admission=True)
    event.quotas.create(name="Seats", size=None).items.add(item)
    event.seat_category_mappings.create(layout_category=CATEGORY, product=item)
    generate_seats(event, None, plan, {CATEGORY: item})
    return {"event": slug, "item": str(item.pk)}


def create_listing(organizer: Any, slug: str) -> None:
    """An event whose page lists products, because the page of a seated event has no map in open source."""
    event = create_event(organizer, slug)
    for name, price in (("Stalls", "15.00"), ("Balcony", "12.00")):
        item = event.items.create(name=name, default_price=price, admission=True)
        event.quotas.create(name=name, size=100).items.add(item)


def create_event(organizer: Any, slug: str, **more: Any) -> Any:
    from django.utils.timezone import now  # type: ignore[import-not-found]
    from pretix.base.models import Event

    event = Event.objects.create(
        organizer=organizer,
        name=slug.capitalize(),
        slug=slug,
        currency="EUR",
        date_from=now() + timedelta(days=30),
        live=True,
        is_public=True,
        plugins=PLUGINS,
        **more,
    )
    event.set_defaults()
    event.settings.set("payment_manual__enabled", True)
    return event


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "pretix.settings")
    import django  # type: ignore[import-not-found]

    django.setup()
    print(json.dumps(create_all(json.load(sys.stdin))))


if __name__ == "__main__":
    main()
