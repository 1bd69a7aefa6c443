"""What people are sent: mail, and short texts where the operator has somebody for them (R29).

notice.py    which fact becomes which notice      store.py     notices in the ledger
letter.py    a notice in words, as a mail         writing/     what a letter needs, read and put together
templates/   the words, and the page around them  senders.py   SMTP and HTTP
worker.py    hears facts; its jobs              sending/     lanes: who sends what is due
mailbox/     the mail page of a demo
"""

from holdfast.notifications.notice import NoticeKind
from holdfast.notifications.store import NotificationStore

__all__ = ["NoticeKind", "NotificationStore"]
