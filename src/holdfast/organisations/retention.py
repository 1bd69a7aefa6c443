"""What organisations delete, and after how many days: docs/operating/retention.md."""

from holdfast.config import Config
from holdfast.engines.postgres import Queries
from holdfast.engines.retention import RetentionRule

Q = Queries("holdfast.organisations", "retention")


def rules(config: Config) -> list[RetentionRule]:
    return [RetentionRule("organisations.invitations", Q.invitations, config.invitations_keep_d)]
