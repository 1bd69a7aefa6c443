"""What waiting rooms delete, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.waitingroom", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [
        RetentionRule("waitingroom.places", Q.places, config.queue_keep_d),
        RetentionRule("waitingroom.turns", Q.turns, config.queue_keep_d),
        RetentionRule("waitingroom.log", Q.log, config.past_shows_keep_d),
    ]
