"""Refusals for devices at the door. No I/O.

    Refusal
    ├── NoGatePass          403  no pass of this account is good now
    ├── BadPassCode         401  not the code of a pass that is good
    ├── DeviceTaken         409  the pass belongs to another device
    ├── NoDevice            409  packs are sealed for a device, and this pass has none yet
    ├── NoSuchPass          404  also for another organiser's
    ├── NotAGateAccount     422  a pass for a person needs a member with the right `door`
    ├── NothingToUndo       409  not the last thing that happened with the ticket, or too long ago
    ├── ScanIdUsed          409  the device has used this scan_id for something else
    └── SearchMax           429  too many searches by name in a minute

A refused ticket is not an error here: the verdict is the response.
"""

from holdfast.errors import Refusal


class NoGatePass(Refusal):
    """No pass lets you ask at this door now: it has not begun, is over, or was revoked.

    Ask the organiser for a pass of this show and day.
    """

    code, status, title = "no_gate_pass", 403, "No pass for this door"


class BadPassCode(Refusal):
    """This is not the code of a pass, or the pass is over or was revoked.

    Check the code, or ask the organiser for a new pass.
    """

    code, status, title = "bad_pass_code", 401, "Unknown pass code"


class DeviceTaken(Refusal):
    """Another device has signed in with this pass already. A pass is for one device.

    Ask the organiser for a new pass, and to revoke this one if the device is lost.
    """

    code, status, title = "device_taken", 409, "Another device has this pass"


class NoDevice(Refusal):
    """A pack is sealed for one device, and this pass has none yet.

    Send the device's public key with `POST /gate/device` first.
    """

    code, status, title = "no_device", 409, "No device yet"


class NoSuchPass(Refusal):
    """There is no such pass of yours."""

    code, status, title = "no_such_pass", 404, "No such pass"


class NotAGateAccount(Refusal):
    """No member of the organisation who has the right `door` has this address.

    Invite the person to the organisation with that right; when they have accepted, they can have a pass. Or
    leave `email` out to get a code that a device signs in with.
    """

    code, status, title = "not_a_gate_account", 422, "Not a member who works at the door"


class NothingToUndo(Refusal):
    """There is no such admission, or something has happened with the ticket since, or it is too long ago.

    Scan the ticket out instead.
    """

    code, status, title = "nothing_to_undo", 409, "Nothing to undo"


class ScanIdUsed(Refusal):
    """This device has used the same `scan_id` for another ticket, another direction or an undo.

    The same id is the same scan, and gets its answer. Generate a new one per scan, also after a restart.
    """

    code, status, title = "scan_id_used", 409, "This scan_id was used for something else"


class SearchMax(Refusal):
    """This pass has too many searches by name in a minute.

    Scan the ticket, or wait as long as Retry-After says.
    """

    code, status, title = "search_max", 429, "Too many searches"
