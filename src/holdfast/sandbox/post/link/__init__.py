"""One connection to whoever takes the notices."""

from holdfast.sandbox.post.link.store import Link, Target, Unreachable

__all__ = ["Link", "Target", "Unreachable"]
