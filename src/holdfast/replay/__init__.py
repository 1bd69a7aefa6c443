"""The replay of a sale: the seat map as it changed, demand, the queue; a page and a file (R33).

changes.py  moves become changes of seats     encoding.py  changes become bytes
sale.py     events and figures of a sale      scene.py     the document that a player reads
store.py    reads one show                    demand.py    stores how often seats were refused
queue.py    reads the log of a waiting room   page.py      texts and the file
api.py      /admin/shows/{show}/replay.html
"""

from holdfast.replay.demand import FLUSH_PAUSE_S, DemandWriter
from holdfast.replay.page import build_rows, file_headers, render_file, say_period
from holdfast.replay.queue import QueueReader
from holdfast.replay.sale import QueueLog, QueuePoint
from holdfast.replay.store import Replay, Replays

__all__ = [
    "FLUSH_PAUSE_S",
    "DemandWriter",
    "QueueLog",
    "QueuePoint",
    "QueueReader",
    "Replay",
    "Replays",
    "build_rows",
    "file_headers",
    "render_file",
    "say_period",
]
