"""What the replay deletes, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.retention import RetentionRule, rows_of_archived_shows


def rules(config: Config) -> list[RetentionRule]:
    return [rows_of_archived_shows("seat_demand", config.past_shows_keep_d)]
