"""Links in mails: addresses that count as proved, tokens of links, and links in mails that were stored."""

import re
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default

from holdfast.accounts import MailToken, Purpose
from holdfast.app import App
from holdfast.engines.postgres import Postgres
from tests.support.mail_servers import Office

LINK = re.compile(r"/link/([\w-]{40,})", re.ASCII)


async def prove_address(postgres: Postgres, email: str) -> None:
    """As if the newest sign-up with this address had used the link in its mail."""
    await postgres.execute(
        "UPDATE account SET email = contact_email, contact_email = NULL, verified_at = now()"
        " WHERE id = (SELECT max(id) FROM account WHERE contact_email = $1 AND password_hash IS NOT NULL)",
        email,
    )


async def a_link(app: App, purpose: Purpose, email: str, account_id: int | None = None) -> str:
    """The token of a link, as a mail has it."""
    return await app.mail_tokens.issue(MailToken(purpose=purpose, email=email, account_id=account_id))


async def mails_to(office: Office, address: str) -> list[EmailMessage]:
    """Composed, sent and stored, in the order in which they were written."""
    await office.consume_and_send()
    sql = (
        "SELECT message FROM stored_message JOIN notice ON notice.id = notice_id"
        " WHERE address = $1 ORDER BY notice.id"
    )
    rows = [row for one in office.offices for row in await one.app.postgres.fetch(sql, address)]
    return [message_from_bytes(row["message"], policy=default) for row in rows]


def link_in(mail: EmailMessage) -> str:
    """The token of the one link in a mail."""
    body = mail.get_body(("plain",))
    assert body is not None
    (token,) = set(LINK.findall(body.get_content()))
    return str(token)


async def mailed_link(office: Office, address: str) -> str:
    """The token in the newest mail to this address."""
    return link_in((await mails_to(office, address))[-1])
