"""What accounts delete, and after how many days: docs/operating/retention.md."""

from collections.abc import Sequence

from holdfast.config import Config
from holdfast.engines.postgres import Queries, Queryable
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.accounts", "retention")


def rules(config: Config, pods: Sequence[Queryable] = ()) -> list[RetentionRule]:
    """With `pods`: guests who bought there stay. If one of them is away, no guest is deleted."""

    async def find_buyers(home: Queryable, position: int, rows_max: int) -> list[int]:
        if not pods:
            return []
        seen = [row["id"] for row in await home.fetch(Q.guests_seen, position, rows_max)]
        return [row["owner_id"] for pod in pods for row in await pod.fetch(Q.buyers_among, seen)]

    return [
        RetentionRule("accounts.guests", Q.guests, config.guests_keep_d, find_buyers),
        RetentionRule("accounts.contacts", Q.contacts, config.personal_keep_d),
    ]
