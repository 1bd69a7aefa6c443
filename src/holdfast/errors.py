"""Base class of all refusals, and those that any HTTP route can return. No I/O.

A refusal is the response to a valid request that cannot be fulfilled. A broken engine or a bug is never one.
The docstring of each class is its page in /problems: what happened, and what to do next.
Each subject has its own refusals in `<folder>/errors.py`.

    Refusal
    ├── Malformed           400  the body is not JSON
    ├── BadKey              400  the Idempotency-Key is not valid
    ├── OrganisationNeeded  400  the caller is in several organisations and did not choose one
    ├── NotSignedIn         401  the route requires a signed-in account
    ├── TokenExpired        401  the access token has expired; refresh it
    ├── TokenInvalid        401  the token was not issued for this, or was revoked
    ├── NotAllowed          403  signed in, but without the role or right that the route requires
    ├── NotAMember          403  the organisation is another one's, or does not exist
    ├── SecondFactorNeeded  403  the house or the organisation wants a second factor, and the caller has none
    ├── NoSuchRoute         404  nothing is at this address
    ├── MethodNotAllowed    405  the address exists, but not for this method
    ├── StillProcessing     409  same Idempotency-Key, first attempt not finished
    ├── BodyTooLarge        413  the body exceeds the limit
    ├── WrongMediaType      415  the body is not declared as JSON
    ├── Invalid             422  a value is not what the route accepts; carries the field
    ├── KeyReused           422  same Idempotency-Key, different body
    ├── TooManyRequests     429  too many requests from one address
    ├── TimedOut            503  no response within the time limit of a request
    └── Busy                503  the server is at its limit; try again after retry_after_s
"""


class Refusal(Exception):
    """The request was valid and was refused."""

    code = "refused"
    status = 400
    title = "Refused"

    def __init__(self, **details: object) -> None:
        self.details = details

    def __str__(self) -> str:
        return f"{self.code} {self.details}" if self.details else self.code


class KeyReused(Refusal):
    """This Idempotency-Key was used before with a different request. Use a new key for a new request."""

    code, status, title = "key_reused", 422, "Idempotency-Key already used"


class StillProcessing(Refusal):
    """An earlier request with this Idempotency-Key has not finished.

    Send the same request with the same key again after the seconds in Retry-After to get its response.
    """

    code, status, title = "still_processing", 409, "First attempt still in progress"


class BadKey(Refusal):
    """The Idempotency-Key is empty, too long, or has characters that are not visible ASCII.

    Send 1 to 255 visible ASCII characters; a random UUID is a good key. Use a new one for each new request.
    """

    code, status, title = "bad_key", 400, "Invalid Idempotency-Key"


class Malformed(Refusal):
    """The request body is not well-formed JSON in UTF-8, or is nested too deeply. `detail` has the position.

    Correct the body and send it again.
    """

    code, status, title = "malformed", 400, "Request body is not valid JSON"


class Invalid(Refusal):
    """The request is well formed, but a value is missing, unknown, of the wrong type or out of range.

    `field` is the path of that value and `detail` describes what was expected. The API reference lists
    every field with its limits.
    """

    code, status, title = "invalid", 422, "Invalid value"


class BodyTooLarge(Refusal):
    """The request body is larger than `limit` bytes. Send less at a time."""

    code, status, title = "body_too_large", 413, "Request body too large"


class WrongMediaType(Refusal):
    """This address accepts JSON only. Send the body with `Content-Type: application/json`."""

    code, status, title = "unsupported_media_type", 415, "Unsupported media type"


class NoSuchRoute(Refusal):
    """There is nothing at this address. The API reference at /docs lists every address."""

    code, status, title = "no_such_route", 404, "Address not found"


class MethodNotAllowed(Refusal):
    """The address exists, but not for this method. The Allow header lists the allowed methods."""

    code, status, title = "method_not_allowed", 405, "Method not allowed"


class TooManyRequests(Refusal):
    """Too many requests came from your address in a short time. Nothing was changed.

    Wait for the seconds in Retry-After, then send requests more slowly.
    """

    code, status, title = "too_many_requests", 429, "Too many requests"


class TimedOut(Refusal):
    """The request was not finished within the time limit. It may still have taken effect.

    Send the same request with the same Idempotency-Key again, or read the resource before you repeat it.
    """

    code, status, title = "timed_out", 503, "Request timed out"


class NotSignedIn(Refusal):
    """This address requires a signed-in account, and the request carries no access token.

    Log in, then send the access token as `Authorization: Bearer …`.
    """

    code, status, title = "not_signed_in", 401, "Not signed in"


class TokenExpired(Refusal):
    """This token has expired.

    Get a new access token with your refresh token. If that one has expired too, log in again.
    """

    code, status, title = "token_expired", 401, "Token expired"


class TokenInvalid(Refusal):
    """This token was not issued for this purpose, or it has been revoked.

    A token is revoked by logging out, by changing the password, and by using a refresh token twice. Log in
    again.
    """

    code, status, title = "token_invalid", 401, "Invalid token"


class NotAllowed(Refusal):
    """You are signed in, but may not do this. `needed` is the required role, or right in the organisation.

    Ask an owner of the organisation for the right.
    """

    code, status, title = "not_allowed", 403, "Not allowed"


class OrganisationNeeded(Refusal):
    """You are a member of several organisations, and the request does not name the one it is for.

    Send its id as `Holdfast-Organisation`. `GET /me/organisations` lists yours.
    """

    code, status, title = "organisation_needed", 400, "Choose an organisation"


class NotAMember(Refusal):
    """You are not a member of the organisation that the request names, or it does not exist.

    `GET /me/organisations` lists yours. A member of the organisation can invite you.
    """

    code, status, title = "not_a_member", 403, "Not a member"


class SecondFactorNeeded(Refusal):
    """The house, or this organisation, lets only people with a second factor work for it, and you have none.

    Add an authenticator app or a passkey to your account: on its page, or with `POST /me/second-factor/totp`.
    Your rights are back at once.
    """

    code, status, title = "second_factor_needed", 403, "Second factor needed"


class Busy(Refusal):
    """The server is at its limit. Nothing was changed. Try again after the seconds in Retry-After."""

    code, status, title = "busy", 503, "Server busy, try again"
