"""Notifications: mail, and short messages if the operator configured a provider for them (R29).

notice.py    which fact becomes which notice      store.py      notices in the ledger
queue_notices.py   notices to people in a waiting room
render.py    a notice as text, HTML and mail      message_data.py  loads the data that a message shows
templates/   texts per language, page layout      senders.py    SMTP and HTTP
jobs.py      the consumer of facts and the jobs   deliver.py    workers that send due notices
api.py       /admin/notices                       demo_mailbox_api.py   the mail page of a demo
every_pod.py  notices of all databases           pod_composer.py  about shows that have moved
"""

from holdfast.notifications.notice import NoticeKind
from holdfast.notifications.store import NotificationStore

__all__ = ["NoticeKind", "NotificationStore"]
