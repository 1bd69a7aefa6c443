"""Refusals of sign-in with a provider. No I/O."""

from holdfast.errors import Refusal


class NoSuchProvider(Refusal):
    """This sign-in service is not set up here. Sign in another way."""

    code, status, title = "no_such_provider", 404, "Unknown sign-in service"


class ProviderDown(Refusal):
    """The sign-in service does not answer, or not as it should. Try again later, or sign in another way.

    Operators: `holdfast doctor` and the log have the reason.
    """

    code, status, title = "provider_down", 503, "Sign-in service not available"


class SignInNotFinished(Refusal):
    """The sign-in was cancelled, took too long, or was begun in another browser. Start again."""

    code, status, title = "sign_in_not_finished", 400, "Sign-in not finished"


class AddressNotProved(Refusal):
    """The sign-in service has no confirmed e-mail address of yours. Confirm it there, or sign up here."""

    code, status, title = "address_not_proved", 403, "E-mail address not confirmed"


class IdentityTaken(Refusal):
    """You have connected this sign-in service to another account here. Disconnect it there first."""

    code, status, title = "identity_taken", 409, "Connected to another account"
