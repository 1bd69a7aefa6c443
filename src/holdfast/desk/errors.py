"""Refusals of the desk. No I/O.

Refusal
└── NoSuchDesk          404  of an organisation that the signed-in person does not work for
"""

from holdfast.errors import Refusal


class NoSuchDesk(Refusal):
    """There is no such organisation, or you are not a member of it. Open `/desk` for yours."""

    code, status, title = "no_such_desk", 404, "No such organisation"
