"""What was given up after many tries, and waits for a person."""

from dataclasses import dataclass

from holdfast.engines.postgres import Queries, Queryable, require_row

Q = Queries("holdfast.audit")


@dataclass(frozen=True, slots=True)
class DeadLetters:
    facts: int
    webhooks: int  # of the payment gateway
    notices: int


async def count_dead_letters(connection: Queryable) -> DeadLetters:
    return DeadLetters(**require_row(await connection.fetchrow(Q.dead_letters)))
