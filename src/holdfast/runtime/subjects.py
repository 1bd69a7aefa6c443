"""The subjects that a process may serve or work for: `--only`."""

from holdfast.engines.errors import OperatorError

# The tag of a route without its spaces.
SERVED = (
    "accounts",
    "admin",
    "catalogue",
    "gate",
    "notifications",
    "pages",
    "payments",
    "queue",
    "sale",
    "desk",
    "search",
    "seatmap",
    "site",
    "tickets",
)
# Jobs by subject: background.py says what each does.
WORKED = (
    "accounts",
    "audit",
    "catalogue",
    "notifications",
    "outbox",
    "payments",
    "retention",
    "sale",
    "search",
    "web",
    "webhooks",
)


def parse_only(only: str, known: tuple[str, ...]) -> frozenset[str] | None:
    """The names in `only`; None: all there are. OperatorError when one is not known."""
    if not only:
        return None
    names = [name for name in (word.strip() for word in only.split(",")) if name]
    if strange := [name for name in names if name not in known]:
        raise OperatorError(f"--only: unknown: {', '.join(strange)}; choose from {', '.join(known)}")
    if not names:
        raise OperatorError(f"--only: name at least one of {', '.join(known)}")
    return frozenset(names)
