"""The base of every fact's body. No I/O."""

from typing import Any, ClassVar

from msgspec import Struct


class Body(Struct, frozen=True, kw_only=True):
    KIND: ClassVar[str] = ""
    VERSION: ClassVar[int] = 1


class UnknownBody(Body, frozen=True, kw_only=True):
    """A kind or a body that this program does not know: written by a newer one."""

    values: dict[str, Any]
