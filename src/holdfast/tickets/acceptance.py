"""Accepting a ticket that was transferred: by the mailed link, or by an account with a proved address.

The link works without an account: then a guest is made whose address it proves, and its browser is signed in
as that guest. If the address is an account's, the account sees the guest's tickets, too; a link that is valid
for months must not sign in to the account itself.
"""

from holdfast.accounts import LinkGone, MailTokens, Purpose, Session, Sessions
from holdfast.engines.postgres import Postgres
from holdfast.tickets.issued import IssuedTicket
from holdfast.tickets.transfer import Transfers


class Acceptance:
    def __init__(
        self, postgres: Postgres, transfers: Transfers, tokens: MailTokens, sessions: Sessions
    ) -> None:
        self._postgres = postgres
        self._transfers = transfers
        self._tokens = tokens
        self._sessions = sessions

    async def accept(self, place: tuple[int, int], account_id: int, proved_email: str | None) -> IssuedTicket:
        async with self._postgres.transaction() as tx:
            return await self._transfers.accept(tx, place, account_id=account_id, email=proved_email)

    async def accept_by_link(self, text: str, account_id: int) -> IssuedTicket:
        """For the account that is signed in, whatever its address."""
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.CLAIM)
            if token.show_id is None or token.number is None:
                raise LinkGone
            return await self._transfers.accept(
                tx,
                (token.show_id, token.number),
                account_id=account_id,
                email=token.email,
                edition=token.edition,
            )

    async def accept_in_browser(
        self, text: str, session: Session | None, *, locale: str, device: str
    ) -> tuple[IssuedTicket, str | None]:
        """The ticket and, where the browser had no session, the cookie of a new one."""
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.CLAIM)
            if token.show_id is None or token.number is None:
                raise LinkGone
            cookie = None
            if session is None:
                account_id, cookie = await self._sessions.open_proved_guest(tx, token.email, locale, device)
            else:
                account_id = session.account_id
                if session.is_guest and session.contact_email is None:
                    await self._sessions.prove_guest(tx, account_id, token.email)
            ticket = await self._transfers.accept(
                tx,
                (token.show_id, token.number),
                account_id=account_id,
                email=token.email,
                edition=token.edition,
            )
        return ticket, cookie
