"""A gate whose shows are in several databases: each answers for its own shows.

A pod that cannot be reached refuses what needs it: a pack or a count with a show missing would mislead the
door. Uploads are refused as a whole and sent again; scans that were recorded are recorded once.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from holdfast.checkin.offline import PackShow
from holdfast.checkin.scan import OfflineScan, ShowCount, UploadedScan
from holdfast.checkin.store import FOUND_MAX, ActivePass, FoundHolder
from holdfast.engines.postgres import Postgres
from holdfast.pods import read_where_sold
from holdfast.tickets import BadCode

if TYPE_CHECKING:
    from holdfast.app import App

T = TypeVar("T")


async def load_counts(app: "App", show_ids: Sequence[int]) -> list[ShowCount]:
    """In the order of the shows."""
    if not app.router.has_pods:
        return await app.checkin.counts(show_ids)
    return [await _count_show(app, show_id) for show_id in show_ids]


async def search_tickets(app: "App", standby: ActivePass, words: str) -> list[FoundHolder]:
    """By booking reference if the text is one, else by name. The home database counts searches."""
    await app.checkin.note_search(standby)
    pods = _by_pod(app, standby.show_ids)
    found = [one for pod, some in pods for one in await pod.checkin.find_by_reference(some, words)]
    if not found:
        found = [one for pod, some in pods for one in await pod.checkin.find_by_name(some, words)]
    return found[:FOUND_MAX]


async def build_pack(app: "App", standby: ActivePass) -> bytes:
    """A pack of half a show would refuse people who have tickets."""
    if not app.router.has_pods:
        return await app.checkin.pack(standby)

    async def load_show(show_id: int) -> PackShow:
        return await _read_show(app, show_id, lambda pod: pod.checkin.pack_show(show_id))

    return await app.checkin.pack(standby, load_show)


async def upload_scans(app: "App", account_id: int, scans: Sequence[OfflineScan]) -> list[UploadedScan]:
    """In the order of the scans. Those of one show are recorded in the order of the device's clock."""
    if not app.router.has_pods:
        return await app.checkin.upload(account_id, scans)
    places: defaultdict[int, list[int]] = defaultdict(list)
    pods: dict[int, App] = {id(app): app}
    for place, scan in enumerate(scans):
        pod = await _pod_of_code(app, scan.code)
        pods[id(pod)] = pod
        places[id(pod)].append(place)
    done: dict[int, UploadedScan] = {}
    for name, pod in pods.items():
        mine = places[name]
        if mine or pod is app:  # home refuses a device without a pass, whatever it sends
            uploaded = await pod.checkin.upload(account_id, [scans[place] for place in mine])
            done |= dict(zip(mine, uploaded, strict=True))
    return [done[place] for place in range(len(scans))]


async def _count_show(app: "App", show_id: int) -> ShowCount:
    (found,) = await _read_show(app, show_id, lambda pod: pod.checkin.counts([show_id]))
    return found


async def _read_show(app: "App", show_id: int, read: Callable[["App"], Awaitable[T]]) -> T:
    """All that the show has. Raises Busy while it moves."""

    async def read_there(_database: Postgres) -> T:
        return await read(app.router.for_show(show_id))

    return await read_where_sold(app.router_database, app.router.directory.follow, show_id, read_there)


async def _pod_of_code(app: "App", text: str) -> "App":
    """A code that we did not sign is refused anywhere."""
    try:
        return app.router.for_show((await app.tickets.read(text)).ticket.show_id)
    except BadCode:
        return app


def _by_pod(app: "App", show_ids: Iterable[int]) -> list[tuple["App", list[int]]]:
    shows: defaultdict[int, list[int]] = defaultdict(list)
    pods: dict[int, App] = {}
    for show_id in show_ids:
        pod = app.router.for_show(show_id)
        pods[id(pod)] = pod
        shows[id(pod)].append(show_id)
    return [(pod, shows[name]) for name, pod in pods.items()]
