"""The door: who comes in, once (R30).

verdict.py   what is asked and said      pack.py      what a gate without a network needs
offline.py   its rules                   passport.py  who may ask: passes of devices
store.py     one row decides             routes.py    /gate/…
passes/      the organisers' side        station/     a gate on a keyboard scanner: `holdfast gate`
"""

from holdfast.gate.store import Gate

__all__ = ["Gate"]
