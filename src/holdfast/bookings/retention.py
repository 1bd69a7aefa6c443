"""What bookings delete, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.bookings", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [
        RetentionRule("bookings.lapsed", Q.lapsed, config.lapsed_keep_d),
        RetentionRule("bookings.past_sales", Q.past_sales, config.past_shows_keep_d),
    ]
