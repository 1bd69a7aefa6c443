"""Refusals of waiting rooms. No I/O."""

from holdfast.errors import Refusal


class NoQueue(Refusal):
    """This show has no waiting room. Seats are held without one."""

    code, status, title = "no_queue", 404, "No waiting room"


class QueueNotOpen(Refusal):
    """The waiting room of this show is not open. `opens_at` is when people can join, if that is known."""

    code, status, title = "queue_not_open", 409, "The waiting room is not open"


class QueueSoldOut(Refusal):
    """Everything was sold before your turn. Join the waitlist: tickets that come back are offered there."""

    code, status, title = "queue_drained", 409, "Sold out"


class NoPlace(Refusal):
    """You have no place in this waiting room. Join it first."""

    code, status, title = "no_place", 404, "No place in the queue"


class NotYourTurn(Refusal):
    """It is not your turn yet. `ahead` people are before you; look again after `retry_after_s` seconds."""

    code, status, title = "not_your_turn", 409, "Not your turn yet"


class TurnOver(Refusal):
    """Your turn is over: you left, did not respond in time, or have used it. Join again for another place."""

    code, status, title = "turn_over", 409, "Your turn is over"


class NotAdmitted(Refusal):
    """Seats of this show are held only by people whose turn it is. Nothing was held.

    Join the waiting room (`POST /shows/{show}/queue`), redeem your turn (`POST /shows/{show}/queue/pass`),
    and send the pass in the header `Admission`.
    """

    code, status, title = "not_admitted", 403, "Please wait for your turn"


class QueueTokenInvalid(Refusal):
    """This is not a place or pass that we issued, or it was changed. Get yours from the waiting room."""

    code, status, title = "queue_token_invalid", 403, "Not a valid place or pass"


class QueueTokenKeyUnknown(Refusal):
    """The key that signed this place or pass is unknown or was revoked. Get yours again from the room."""

    code, status, title = "queue_token_key_unknown", 403, "Signed by an unknown key"


class QueueTokenOfOtherAccount(Refusal):
    """This place or pass belongs to another account. After signing in, get yours again from the room."""

    code, status, title = "queue_token_of_other_account", 403, "Another account's place or pass"


class QueueTokenOfOtherShow(Refusal):
    """This place or pass is for another show."""

    code, status, title = "queue_token_of_other_show", 403, "Another show's place or pass"


class QueueTokenExpired(Refusal):
    """The time of this place or pass is over. Join the waiting room again for another turn."""

    code, status, title = "queue_token_expired", 403, "The time of this pass is over"


class QueueTokenUsed(Refusal):
    """The visit of this pass has ended: you left, or bought tickets. Join again for another turn."""

    code, status, title = "queue_token_used", 403, "This pass was used"


class WrongRoomState(Refusal):
    """The waiting room is in another `state`, in which this cannot be done."""

    code, status, title = "wrong_room_state", 409, "Not possible in this state of the room"


# Of the check before every hold.
REFUSED_PASSES: tuple[type[Refusal], ...] = (
    NotAdmitted,
    QueueTokenInvalid,
    QueueTokenKeyUnknown,
    QueueTokenOfOtherAccount,
    QueueTokenOfOtherShow,
    QueueTokenExpired,
    QueueTokenUsed,
)
