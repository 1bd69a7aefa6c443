"""Shows spread over several databases: each pod has engines of its own and owns a set of shows (R36)."""

from holdfast.pods.catch_up import CatchUp
from holdfast.pods.close import ClosedShow, DatabaseFor, ShowCloser, closing_shows, require_caught_up
from holdfast.pods.counts import PodCounts
from holdfast.pods.directory import FOLLOW_S, Directory, load_owner
from holdfast.pods.errors import ShowElsewhere
from holdfast.pods.gauge import PodGauge
from holdfast.pods.moment import one_moment
from holdfast.pods.place import HOME, PodPlace, parse_pods
from holdfast.pods.router import PodRouter
from holdfast.pods.store import PodFacts, PodStore, read_where_sold, require_show_here
from holdfast.pods.tables import GUARDED, OF_A_SHOW, REPLICATED, SALE, SALE_COLUMNS
from holdfast.pods.waiting import wait_until

__all__ = [
    "FOLLOW_S",
    "GUARDED",
    "HOME",
    "OF_A_SHOW",
    "REPLICATED",
    "SALE",
    "SALE_COLUMNS",
    "CatchUp",
    "ClosedShow",
    "DatabaseFor",
    "Directory",
    "PodCounts",
    "PodFacts",
    "PodGauge",
    "PodPlace",
    "PodRouter",
    "PodStore",
    "ShowCloser",
    "ShowElsewhere",
    "closing_shows",
    "load_owner",
    "one_moment",
    "parse_pods",
    "read_where_sold",
    "require_caught_up",
    "require_show_here",
    "wait_until",
]
