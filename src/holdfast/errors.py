"""Every way the box office says no to somebody who asked properly. No I/O.

    Refusal
    ├── SeatsTaken          409  somebody was first; carries the seats and what is still free
    ├── SoldOut             409  no seats left that fit the wish
    ├── LeavesOrphan        409  the choice would leave a single seat; carries a better one
    ├── OverLimit           409  more seats than one person may have in this show
    ├── NotOnSale           403  the sale has not opened, or has closed
    ├── HoldGone            410  the hold ended
    ├── WrongMove           409  the booking is not in a state that allows this
    ├── ExtensionCap        409  the hold has been extended as far as it may
    ├── KeyReused           422  same idempotency key, another body
    ├── StillProcessing     409  same key, first attempt not finished
    ├── BadKey              400  the idempotency key is not one
    ├── Malformed           400  the body is not JSON
    ├── Invalid             422  the JSON is not what this route takes; carries the field
    ├── BodyTooLarge        413  the body is longer than we read
    ├── WrongMediaType      415  the body says that it is not JSON
    ├── NoSuchRoute         404  nothing lives at this address
    ├── MethodNotAllowed    405  the address exists, this method does not
    ├── TooManyRequests     429  more requests from one address than we take
    ├── TimedOut            503  no answer within the time limit of a request
    ├── UnknownSeat         422  no such seat, area or category in this show
    ├── NoSuchShow          404
    ├── NoSuchCity          404
    ├── NoSuchVenue         404
    ├── NoSuchHall          404
    ├── NoSuchLayout        404
    ├── NoSuchEvent         404  to an organiser also another organiser's: whose it is, is not told
    ├── NotForOrganisers    403  only an admin may do this
    ├── NameTaken           409  something else has this name
    ├── BadLayout           422  the drawing of a hall has a mistake; says where
    ├── BadWindow           422  the times of a show contradict each other; carries the field
    ├── UnknownCategory     422  a price for a category that the layout does not have
    ├── UnpricedCategory    422  a category of the layout has no price
    ├── HallBusy            409  another show is in the hall at that time
    ├── LayoutInUse         409  seats are sold from this layout; it may only grow
    ├── ShowCancelled       409  a cancelled show is not changed any more
    ├── NoSuchBooking       404  also for somebody else's: whose it is, is not told
    ├── NotSignedIn         401  the route wants somebody signed in, and nobody is
    ├── TokenExpired        401  the access token's time is over; refresh it
    ├── TokenInvalid        401  not a token of ours, or one that was revoked
    ├── BadCredentials      401  no account with this e-mail address and password
    ├── WrongPassword       403  the current password given for a change is not the current one
    ├── NotAllowed          403  signed in, but not in the role this route is for
    ├── EmailTaken          409  there is an account with this e-mail address
    └── Busy                503  we are at our limit; try again in retry_after_s

A refusal is an answer. A broken engine or a bug is not, and is never a Refusal.
The docstring of each class is its page in /problems: what happened, and what to do next.
"""


class Refusal(Exception):
    """The request was understood and refused."""

    code = "refused"
    status = 400
    title = "Refused"

    def __init__(self, **details: object) -> None:
        self.details = details

    def __str__(self) -> str:
        return f"{self.code} {self.details}" if self.details else self.code


class SeatsTaken(Refusal):
    """Somebody else has at least one of the seats you asked for. Nothing was held.

    `taken` lists those seats; `alternatives` offers up to three groups of the same size. Ask for one of them.
    """

    code, status, title = "seats_taken", 409, "Somebody was faster"


class SoldOut(Refusal):
    """No free seats fit the wish: too few are left, or none stand together.

    `free` says how many seats are free in all. Ask for fewer, for another category, or allow a split group.
    """

    code, status, title = "sold_out", 409, "No seats left that fit"


class LeavesOrphan(Refusal):
    """The seats you picked would leave a single seat that nobody can use; there is a choice that does not.

    `better` is the nearest such choice: ask for it, or use best available.
    """

    code, status, title = "leaves_orphan", 409, "This would leave a single seat"


class OverLimit(Refusal):
    """You have, or would have, more seats in this show than one person may.

    `limit` is the number allowed. Release a hold you do not need, or ask for fewer seats.
    """

    code, status, title = "over_limit", 409, "Too many seats for one person"


class NotOnSale(Refusal):
    """The show is not on sale at this moment.

    `opens_at` and `closes_at` say when it is. A sale opens by itself, on time.
    """

    code, status, title = "not_on_sale", 403, "Not on sale"


class HoldGone(Refusal):
    """The hold has ended: its time passed, or it was cancelled. The seats may be somebody else's by now.

    Hold seats again, with a new Idempotency-Key.
    """

    code, status, title = "hold_gone", 410, "The hold has ended"


class WrongMove(Refusal):
    """The booking is not in a state that allows this. `state` says which it is in.

    Read the booking again and decide from there.
    """

    code, status, title = "wrong_move", 409, "Not possible in this state"


class ExtensionCap(Refusal):
    """The hold has been extended as far as it may. Finish the booking before `expires_at`."""

    code, status, title = "extension_cap", 409, "The hold cannot be extended further"


class KeyReused(Refusal):
    """The Idempotency-Key was used before with another request. Use a new key for a new request."""

    code, status, title = "key_reused", 422, "Idempotency-Key used for something else"


class StillProcessing(Refusal):
    """An earlier request with this Idempotency-Key has not finished.

    Send the same request with the same key again after the seconds in Retry-After: you get its answer.
    """

    code, status, title = "still_processing", 409, "The first attempt is still running"


class BadKey(Refusal):
    """The Idempotency-Key is empty, too long, or has characters that cannot be seen.

    Send 1 to 255 visible ASCII characters; a random UUID is a good key. Use a new one for each new request.
    """

    code, status, title = "bad_key", 400, "Not an Idempotency-Key"


class Malformed(Refusal):
    """The request body is not well-formed JSON in UTF-8, or is nested too deeply. `detail` says where.

    Correct the body and send it again.
    """

    code, status, title = "malformed", 400, "The body is not JSON"


class Invalid(Refusal):
    """The request is well formed, but a value is missing, unknown, of the wrong kind or out of range.

    `field` is the path of that value and `detail` says what was expected there. The API reference lists every
    field with its limits.
    """

    code, status, title = "invalid", 422, "A value is not valid"


class BodyTooLarge(Refusal):
    """The request body is longer than the `limit` bytes we read. Send less at a time."""

    code, status, title = "body_too_large", 413, "The body is too large"


class WrongMediaType(Refusal):
    """This address takes JSON only. Send the body with `Content-Type: application/json`."""

    code, status, title = "unsupported_media_type", 415, "Only JSON is understood here"


class NoSuchRoute(Refusal):
    """Nothing lives at this address. The API reference at /docs lists every address there is."""

    code, status, title = "no_such_route", 404, "No such address"


class MethodNotAllowed(Refusal):
    """The address exists, but not for this method. The Allow header lists the methods it takes."""

    code, status, title = "method_not_allowed", 405, "Not with this method"


class TooManyRequests(Refusal):
    """Too many requests came from your address in a short time. Nothing was changed.

    Wait for the seconds in Retry-After, then go on more slowly.
    """

    code, status, title = "too_many_requests", 429, "Too many requests"


class TimedOut(Refusal):
    """The answer did not come within our time limit. What you asked for may have been done all the same.

    Send the same request with the same Idempotency-Key again, or read the resource before you repeat it.
    """

    code, status, title = "timed_out", 503, "No answer in time"


class UnknownSeat(Refusal):
    """The show has no such seat, standing area or category. Read the layout of the show for its names."""

    code, status, title = "unknown_seat", 422, "No such seat"


class NoSuchShow(Refusal):
    """There is no show with this number."""

    code, status, title = "no_such_show", 404, "No such show"


class NoSuchCity(Refusal):
    """There is no city with this number or slug. GET /cities lists them."""

    code, status, title = "no_such_city", 404, "No such city"


class NoSuchVenue(Refusal):
    """There is no venue with this number, or it is another organiser's."""

    code, status, title = "no_such_venue", 404, "No such venue"


class NoSuchHall(Refusal):
    """There is no hall with this number, or it is another organiser's."""

    code, status, title = "no_such_hall", 404, "No such hall"


class NoSuchLayout(Refusal):
    """There is no layout with this hash that you have brought in, or that a hall open to you uses.

    POST it to /admin/layouts first: the answer has its hash.
    """

    code, status, title = "no_such_layout", 404, "No such layout"


class NoSuchEvent(Refusal):
    """There is no event with this number, or it is another organiser's."""

    code, status, title = "no_such_event", 404, "No such event"


class NotForOrganisers(Refusal):
    """Cities, the house's own venues and the featured list are kept by admins. Ask one of them."""

    code, status, title = "not_for_organisers", 403, "Only an admin may do this"


class NameTaken(Refusal):
    """Something else has this name already. `field` says which name it is. Choose another."""

    code, status, title = "name_taken", 409, "The name is taken"


class BadLayout(Refusal):
    """The drawing of the hall has a mistake: `detail` says where, and what to do. Nothing was kept."""

    code, status, title = "bad_layout", 422, "The layout has a mistake"


class BadWindow(Refusal):
    """The times of the show contradict each other, or are out of range. Nothing was changed.

    `field` is the time that does not fit and `detail` says how. A show ends after it starts, a sale opens
    before it closes, and it closes before the show ends.
    """

    code, status, title = "bad_window", 422, "The times do not fit"


class UnknownCategory(Refusal):
    """A price was given for a category that the layout of the hall does not have.

    `known` lists those it has.
    """

    code, status, title = "unknown_category", 422, "No such category"


class UnpricedCategory(Refusal):
    """Every category of the layout needs a price: `categories` lists those without; a free seat has 0."""

    code, status, title = "unpriced_category", 422, "A category has no price"


class HallBusy(Refusal):
    """Another show, `show_id`, is in this hall from `starts_at` to `ends_at`. Choose another time."""

    code, status, title = "hall_busy", 409, "The hall is taken at that time"


class LayoutInUse(Refusal):
    """The show sells seats from its layout, so only one that grows from it may replace it.

    Keep every seat where it is, with its label and category, and add new seats after the last one.
    """

    code, status, title = "layout_in_use", 409, "The layout may only grow"


class ShowCancelled(Refusal):
    """The show has been cancelled, which is final. Make a new show instead."""

    code, status, title = "show_cancelled", 409, "The show is cancelled"


class NoSuchBooking(Refusal):
    """There is no booking with this id that belongs to you."""

    code, status, title = "no_such_booking", 404, "No such booking"


class NotSignedIn(Refusal):
    """This address is for people who are signed in, and the request carries no access token.

    Log in, then send the access token as `Authorization: Bearer …`.
    """

    code, status, title = "not_signed_in", 401, "Not signed in"


class TokenExpired(Refusal):
    """The time of this token is over.

    Get a new access token with your refresh token. When that one has expired too, log in again.
    """

    code, status, title = "token_expired", 401, "The token has expired"


class TokenInvalid(Refusal):
    """This is not a token that we gave out for this purpose, or it has been revoked.

    A token is revoked by logging out, by a changed password, and by using a refresh token a second time.
    Log in again.
    """

    code, status, title = "token_invalid", 401, "Not a valid token"


class BadCredentials(Refusal):
    """There is no account with this e-mail address and this password.

    Check both. We do not say which of them is wrong, so that nobody can find out who has an account.
    """

    code, status, title = "bad_credentials", 401, "Wrong e-mail address or password"


class WrongPassword(Refusal):
    """The current password is another one. Nothing was changed."""

    code, status, title = "wrong_password", 403, "Wrong password"


class NotAllowed(Refusal):
    """You are signed in, but your role may not do this. `needed` is the role it takes."""

    code, status, title = "not_allowed", 403, "Not allowed"


class EmailTaken(Refusal):
    """There is an account with this e-mail address. Log in, or use another address."""

    code, status, title = "email_taken", 409, "There is such an account"


class Busy(Refusal):
    """We are at our limit. Nothing was changed. Try again after the seconds in Retry-After."""

    code, status, title = "busy", 503, "Busy, try again"
