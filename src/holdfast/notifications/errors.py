"""Refusals about notices. No I/O.

Refusal
└── NoSuchNotice        404  no notice of this number, or no kind of this name
"""

from holdfast.errors import Refusal


class NoSuchNotice(Refusal):
    """There is no notice of this number, or no kind of notice of this name.

    `GET /admin/notices?state=all` lists the stored notices and their kinds.
    """

    code, status, title = "no_such_notice", 404, "No such notice"
