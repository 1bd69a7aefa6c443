"""Check-in at the door: each ticket admits once (R30).

functions.sql  door_verdict judges a scan      scan.py      requests and verdicts
offline.py     the same rules without a network, and the signed pack they need
upload.py      records scans decided offline   passes.py    which device may scan at which shows
"""

from holdfast.checkin.every_pod import load_counts
from holdfast.checkin.offline import BadPack, OfflineGate, open_pack
from holdfast.checkin.passes import NewPass, PackPage, PassPage, SignedInDevice
from holdfast.checkin.scan import (
    OPENING_VERDICTS,
    SCANS_MAX,
    CountPage,
    FoundPage,
    FoundTicket,
    OfflineScan,
    ShowCount,
    UploadPage,
    Verdict,
    Way,
    describe_verdict,
)
from holdfast.checkin.store import CheckInStore

__all__ = [
    "OPENING_VERDICTS",
    "SCANS_MAX",
    "BadPack",
    "CheckInStore",
    "CountPage",
    "FoundPage",
    "FoundTicket",
    "NewPass",
    "OfflineGate",
    "OfflineScan",
    "PackPage",
    "PassPage",
    "ShowCount",
    "SignedInDevice",
    "UploadPage",
    "Verdict",
    "Way",
    "describe_verdict",
    "load_counts",
    "open_pack",
]
