"""Refusals of signing up and signing in. No I/O."""

from holdfast.errors import Refusal


class BadCredentials(Refusal):
    """There is no account with this e-mail address and this password.

    Check both. The response does not reveal which one is wrong, so that accounts cannot be discovered.
    """

    code, status, title = "bad_credentials", 401, "Wrong e-mail address or password"


class WrongPassword(Refusal):
    """The current password is wrong. Nothing was changed."""

    code, status, title = "wrong_password", 403, "Wrong password"


class EmailTaken(Refusal):
    """There is already an account with this e-mail address. Log in, or use another address."""

    code, status, title = "email_taken", 409, "Account already exists"
