"""Which subjects a process serves and works for: `--only sale,seatmap` (R37).

Any of them may run in processes of their own, in any number, on the same engines: no subject calls another
over a network, and none keeps anything in its process that another would have to know.
"""

from holdfast.engines.errors import OperatorError

# The tag of a route without its spaces.
SERVED: tuple[str, ...] = (
    "accounts",
    "admin",
    "catalogue",
    "gate",
    "notifications",
    "pages",
    "payments",
    "sale",
)
SERVED += ("search", "seatmap", "site", "tickets")
# Jobs by subject: app.py says what each does.
WORKED = (
    "accounts",
    "audit",
    "catalogue",
    "notifications",
    "outbox",
    "payments",
    "sale",
    "search",
    "web",
    "webhooks",
)


def parse_only(only: str, known: tuple[str, ...]) -> frozenset[str] | None:
    """The names in `only`; None: all there are. Trouble when one is not known."""
    if not only:
        return None
    names = [name for name in (word.strip() for word in only.split(",")) if name]
    if strange := [name for name in names if name not in known]:
        raise OperatorError(f"--only: unknown: {', '.join(strange)}; choose from {', '.join(known)}")
    if not names:
        raise OperatorError(f"--only: name at least one of {', '.join(known)}")
    return frozenset(names)
