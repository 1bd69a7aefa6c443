"""One person's data: download and erasure. Each folder erases its own tables; this one puts them together.

data.py      everything stored about a person, as JSON
erasure.py   name and addresses are deleted; bookings and the journal stay
"""

from holdfast.privacy.data import PersonalData
from holdfast.privacy.erasure import Databases, Erasure, PodErasure

__all__ = ["Databases", "Erasure", "PersonalData", "PodErasure"]
