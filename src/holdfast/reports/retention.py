"""What reports reduce to sums, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.reports", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [RetentionRule("reports.stages", Q.stages, config.past_shows_keep_d)]
