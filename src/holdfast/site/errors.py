"""Refusals that only a browser meets. No I/O."""

from holdfast.errors import Refusal


class SignInFirst(Refusal):
    """This page belongs to an account, and the browser has no session.

    Sign in, or open the link from the mail again in the browser in which you bought.
    """

    code, status, title = "sign_in_first", 401, "Please sign in"


class ForeignForm(Refusal):
    """This form was sent by a page that is not ours.

    Open the page on our site and send the form from there.
    """

    code, status, title = "foreign_form", 403, "Form from another site"
