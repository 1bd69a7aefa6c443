"""A large programme, made up, of words that are used as unevenly as real ones."""

import random
from collections.abc import Iterator

import asyncpg

from holdfast.engines.sql import Queries
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
    """The n-th word is used about n^(2/3) times less than the first: a few are everywhere, most are rare."""

    def __init__(self, seed: int = 7) -> None:
        self.random = random.Random(seed)
        made = {
            "".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 4))) for _ in range(WORDS * 2)
        }
        self.words = sorted(sorted(made), key=lambda _: self.random.random())[:WORDS]
        self.names = [word.capitalize() for word in self.words[-NAMES:]]
        self.titles: list[list[str]] = []

    def some(self, count: int) -> list[str]:
        return [self.words[int(len(self.words) * self.random.random() ** 3)] for _ in range(count)]

    def title(self, count: int) -> str:
        self.titles.append(self.some(count))
        return " ".join(self.titles[-1]).title()

    def name(self) -> str:
        return f"{self.random.choice(self.names)} {self.random.choice(self.names)}"


def place(city: int) -> str:
    """The middle of a city, as add_places has it."""
    return f"{8 + city * 37 % 280 / 10:.4f},{69 + city * 53 % 280 / 10:.4f}"


def events(words: Words, count: int) -> Iterator[tuple[object, ...]]:
    for n in range(count):
        yield (
            1,
            KINDS[n % 3],
            words.title(2 + n % 3),
            " ".join(words.some(20)),
            LANGUAGES[n % 5],
            GENRES[n * 7 % 8],
            round(words.random.uniform(3, 10), 1),
            120,
            [words.name(), words.name()],
        )


async def make_programme(url: str, words: Words, event_count: int) -> None:
    """`event_count` events with five shows each, in a database that has none."""
    layout = a_layout(200)
    connection = await asyncpg.connect(url)
    try:
        await connection.fetchrow(Q.quickly)
        await connection.execute(
            Queries("holdfast.catalogue").add_layout, layout.hash, layout.name, "{}", layout.seat_count
        )
        await connection.execute(Q.add_places, CITIES, layout.hash)
        columns = ("organiser_id", "kind", "title", "description", "language", "genre", "rating")
        await connection.copy_records_to_table(
            "event",
            records=events(words, event_count),
            columns=[*columns, "duration_min", "people"],
        )
        await connection.execute(Q.add_shows, event_count, layout.hash, CITIES)
        await connection.execute(Q.add_prices)
        await connection.execute(Q.add_terms)
    finally:
        await connection.close()
    await settle(url)


async def settle(url: str) -> None:
    """The planner knows what is there; it takes longer than a statement of ours may."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(Q.settle)
    finally:
        await connection.close()
