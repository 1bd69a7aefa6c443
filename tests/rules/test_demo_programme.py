"""The demo's events fit their halls."""

from datetime import date

from holdfast.catalogue import Kind
from holdfast.demo.programme import VENUES, timetable
from holdfast.demo.repertoire import EVENTS
from holdfast.demo.seed import LAYOUTS


def test_films_are_shown_on_a_screen_and_music_is_played_on_a_stage() -> None:
    layout_of = {(venue.name, hall): layout for venue in VENUES for hall, layout in venue.halls}
    kind_of = {event.title: event.kind for event in EVENTS}

    for show in timetable(date(2026, 11, 17), EVENTS):
        shapes = {shape.text for shape in LAYOUTS[layout_of[show.venue, show.hall]]().shapes}
        assert ("Screen" in shapes) == (kind_of[show.title] is Kind.FILM), (show, shapes)
