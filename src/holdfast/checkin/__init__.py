"""The door: who comes in, once (R30).

verdict.py   requests and verdicts       pack.py      what a gate without a network needs
offline.py   its rules                   passport.py  who may ask: passes of devices
store.py     one row decides             routes.py    /gate/…
passes/      the organisers' side        station/     a gate on a keyboard scanner: `holdfast gate`
"""

from holdfast.checkin.offline import BadPack, OfflineGate, open_pack
from holdfast.checkin.passes import PackPage, SignedInDevice
from holdfast.checkin.store import CheckInStore
from holdfast.checkin.verdict import (
    OPENING_VERDICTS,
    SCANS_MAX,
    CheckInPage,
    CountPage,
    FoundPage,
    FoundTicket,
    OfflineScan,
    ShowCount,
    UploadPage,
    Verdict,
    Way,
)

__all__ = [
    "OPENING_VERDICTS",
    "SCANS_MAX",
    "BadPack",
    "CheckInPage",
    "CheckInStore",
    "CountPage",
    "FoundPage",
    "FoundTicket",
    "OfflineGate",
    "OfflineScan",
    "PackPage",
    "ShowCount",
    "SignedInDevice",
    "UploadPage",
    "Verdict",
    "Way",
    "open_pack",
]
