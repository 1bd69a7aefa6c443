"""A large invented catalogue whose words are distributed as unevenly as real ones."""

import random
from collections.abc import Iterator

import asyncpg

from holdfast.engines.postgres import Queries
from tests.support.shows import a_layout

Q = Queries("bench", "search_queries")

CITIES = 200
WORDS = 30_000
NAMES = 3_000
SYLLABLES = [a + b for a in "bcdfghjklmnprstvwyz" for b in ("a", "e", "i", "o", "u", "an", "or", "il")]
GENRES = ("Drama", "Comedy", "Jazz", "Rock", "Cricket", "Thriller", "Folk", "Opera")
LANGUAGES = ("Hindi", "Tamil", "English", "French", "Telugu")
KINDS = ("film", "concert", "match")


class Words:
    """The n-th word is used about n^(2/3) times less than the first: a few are frequent, most are rare."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        made = {
            "".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 4))) for _ in range(WORDS * 2)
        }
        self.words = sorted(sorted(made), key=lambda _: self.random.random())[:WORDS]
        self.names = [word.capitalize() for word in self.words[-NAMES:]]
        self.titles: list[list[str]] = []

    def choose(self, count: int) -> list[str]:
        return [self.words[int(len(self.words) * self.random.random() ** 3)] for _ in range(count)]

    def create_title(self, count: int) -> str:
        self.titles.append(self.choose(count))
        return " ".join(self.titles[-1]).title()

    def create_name(self) -> str:
        return f"{self.random.choice(self.names)} {self.random.choice(self.names)}"


def city_centre(city: int) -> str:
    """Latitude and longitude, as add_places computes them."""
    return f"{8 + city * 37 % 280 / 10:.4f},{69 + city * 53 % 280 / 10:.4f}"


def create_events(words: Words, count: int) -> Iterator[tuple[object, ...]]:
    for n in range(count):
        yield (
            1,
            KINDS[n % 3],
            words.create_title(2 + n % 3),
            " ".join(words.choose(20)),
            LANGUAGES[n % 5],
            GENRES[n * 7 % 8],
            round(words.random.uniform(3, 10), 1),
            120,
            [words.create_name(), words.create_name()],
        )


async def create_catalogue(url: str, words: Words, event_count: int) -> None:
    """`event_count` events with five shows each, in an empty database."""
    layout = a_layout(200)
    connection = await asyncpg.connect(url)
    try:
        await connection.fetchrow(Q.skip_checks)
        await connection.execute(
            Queries("holdfast.catalogue").add_layout, layout.hash, layout.name, "{}", layout.seat_count
        )
        await connection.execute(Q.add_places, CITIES, layout.hash)
        columns = ("organiser_id", "kind", "title", "description", "language", "genre", "rating")
        await connection.copy_records_to_table(
            "event",
            records=create_events(words, event_count),
            columns=[*columns, "duration_min", "people"],
        )
        await connection.execute(Q.add_shows, event_count, layout.hash, CITIES)
        await connection.execute(Q.add_prices)
        await connection.execute(Q.add_terms)
    finally:
        await connection.close()
    await analyze(url)


async def analyze(url: str) -> None:
    """Update the planner statistics, on a connection without our statement time-out."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(Q.analyze)
    finally:
        await connection.close()
