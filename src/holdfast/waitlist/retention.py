"""What the waitlist deletes, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.retention import RetentionRule, rows_of_archived_shows

TABLES = ("waitlist_offer", "waitlist_return", "waitlist_entry", "waitlist")


def rules(config: Config) -> list[RetentionRule]:
    return [rows_of_archived_shows(table, config.past_shows_keep_d) for table in TABLES]
