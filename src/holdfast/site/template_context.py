"""What every template of this folder may use. No I/O."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.catalogue import EventCard, choose_palette
from holdfast.site.i18n import Localiser
from holdfast.site.names import country_name, genre_name, language_name
from holdfast.site.seats_left import Moments, best_show, cheapest, left_of

STRONG_INKS = (0, 3, 5, 2, 7)  # those that white posters and dark ones stand out from


def ground_ink(cards: Sequence[EventCard]) -> int:
    """An ink for the ground behind these posters: one that none of them has, if there is one."""
    used = [choose_palette(card.kind, card.title) for card in cards]
    return min(STRONG_INKS, key=used.count)


def telling(l10n: Localiser, now: datetime) -> dict[str, Any]:
    return {
        "moments": Moments(l10n, now),
        "left_of": left_of,
        "best_show": best_show,
        "cheapest": cheapest,
        "ink_of": choose_palette,
        "genre_name": lambda genre: genre_name(genre, l10n),
        "language_name": lambda language: language_name(language, l10n.locale),
        "country_name": lambda code: country_name(code, l10n.locale),
    }
