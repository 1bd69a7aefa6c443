"""Notices of a house with pods: every database sends those about its own shows, with numbers of its own."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast.errors import Invalid
from holdfast.notifications.errors import NoSuchNotice
from holdfast.notifications.notice import NoticeList, NoticePage, NoticesQuery
from holdfast.notifications.store import MAILS_LISTED_MAX
from holdfast.web.every_pod import HOME_NAME, ask_every_pod, find_owners, find_pod
from holdfast.web.pod_pages import format_key, parse_key

if TYPE_CHECKING:
    from holdfast.app import App


async def load_notices(app: "App", wanted: NoticesQuery) -> NoticeList:
    """Newest first."""
    if not app.router.has_pods:
        return await app.notifications.newest(wanted)
    # A page of the merged list may have any of the first rows of each pod.
    start, end = (wanted.page - 1) * wanted.size, wanted.page * wanted.size
    answers = await ask_every_pod(app, lambda each: each.notifications.notices(wanted.state, 0, end + 1))
    found = [replace(one, pod=each.pod) for each, notices in answers.found for one in notices]
    found.sort(key=lambda one: one.written_at, reverse=True)
    return NoticeList(found[start:end], len(found) > end, answers.is_complete, answers.away)


async def replay_notice(app: "App", notice_id: int, pod: str = "") -> NoticePage:
    """In the database that has it. Raises Invalid if several have one of this number, and `pod` is empty."""
    if pod:
        owner = find_pod(app, pod)
        owners = [] if owner is None else [owner]
    else:
        owners = await find_owners(app, lambda each: each.notifications.has_notice(notice_id))
    if not owners:
        raise NoSuchNotice(notice_id=notice_id)
    if len(owners) > 1:
        names = " and ".join(each.pod or HOME_NAME for each in owners)
        raise Invalid(field="pod", detail=f"Expected one of {names}: each has a notice {notice_id}.")
    (each,) = owners
    return replace(await each.notifications.replay(notice_id), pod=each.pod)


async def replay_dead_notices(app: "App") -> tuple[list[NoticePage], list[str]]:
    """And the pods that cannot be reached."""
    answers = await ask_every_pod(app, lambda each: each.notifications.replay_dead())
    return [replace(one, pod=each.pod) for each, some in answers.found for one in some], answers.away


async def load_stored_mails(app: "App") -> tuple[list[dict[str, Any]], list[str]]:
    """The newest mails that a demo has stored, each with its `key`; and the pods that cannot be reached."""
    answers = await ask_every_pod(app, lambda each: each.notifications.stored_messages())
    mails = [{**row, "key": format_key(each.pod, row["id"])} for each, rows in answers.found for row in rows]
    mails.sort(key=lambda one: one["stored_at"], reverse=True)
    return mails[:MAILS_LISTED_MAX], answers.away


async def load_stored_mail(app: "App", key: str) -> bytes:
    """Raises NoSuchNotice."""
    place = parse_key(key)
    pod = None if place is None else find_pod(app, place[0])
    if place is None or pod is None:
        raise NoSuchNotice(notice_id=key)
    return await pod.notifications.stored_message(place[1])
