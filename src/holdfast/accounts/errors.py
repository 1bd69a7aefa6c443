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


class AccountBanned(Refusal):
    """An administrator has banned this account. Ask the box office why."""

    code, status, title = "account_banned", 403, "Account banned"


class LinkGone(Refusal):
    """This link was used before, has expired, or was replaced by a newer one. Request a new one."""

    code, status, title = "link_gone", 410, "Link no longer valid"


class PasswordNeeded(Refusal):
    """The link belongs to an account that is not signed in here: send the account's password with it.

    So the owner of an address cannot be led into confirming an account that another person made.
    """

    code, status, title = "password_needed", 403, "Password needed"


class NoSuchSession(Refusal):
    """Your account has no open session with this number. It may have ended."""

    code, status, title = "no_such_session", 404, "No such session"


class NoSuchAccount(Refusal):
    """There is no account with this number or address."""

    code, status, title = "no_such_account", 404, "No such account"


class LastAdmin(Refusal):
    """This is the only administrator. Give another account the role first."""

    code, status, title = "last_admin", 409, "The last administrator"


class StaffAccount(Refusal):
    """The account has the role organiser, gate or admin. An administrator must make it a fan first."""

    code, status, title = "staff_account", 409, "Staff account"


class EmailTaken(Refusal):
    """There is already an account with this e-mail address. Log in, or use another address."""

    code, status, title = "email_taken", 409, "Account already exists"


class SecondFactorRequired(Refusal):
    """The first step of the sign-in was right, and the account has a second factor.

    Send `token` with a code of the authenticator app or a recovery code to `POST /auth/second-factor`.
    `methods` lists what the account has. The token works once, for `expires_in` seconds.
    """

    code, status, title = "second_factor_required", 401, "Second step needed"


class WrongCode(Refusal):
    """The code is wrong, was used before, or has expired. Wait for the next code of the app.

    A code of the app works once, and a recovery code as well. After five wrong codes sign in again.
    """

    code, status, title = "wrong_code", 403, "Wrong code"


class SignInExpired(Refusal):
    """This sign-in took too long, was completed before, or had too many wrong codes. Sign in again."""

    code, status, title = "sign_in_expired", 410, "Sign-in expired"


class SecondFactorExists(Refusal):
    """The account has an authenticator app already. Remove it first to set up another one."""

    code, status, title = "second_factor_exists", 409, "Already set up"


class NoSecondFactor(Refusal):
    """The account has no second factor of this kind, or its set-up took too long. Begin the set-up again."""

    code, status, title = "no_second_factor", 409, "No second factor"


class BadPasskey(Refusal):
    """This passkey is not known here, was removed, or its answer could not be verified.

    Sign in another way, and add the passkey again if you removed it.
    """

    code, status, title = "bad_passkey", 403, "Passkey not accepted"


class NoSuchPasskey(Refusal):
    """Your account has no passkey with this number."""

    code, status, title = "no_such_passkey", 404, "No such passkey"


class PasskeysMax(Refusal):
    """The account has `limit` passkeys, which is the most. Remove one first."""

    code, status, title = "passkeys_max", 409, "Too many passkeys"
