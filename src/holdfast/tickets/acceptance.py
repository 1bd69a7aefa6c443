"""Accepting a ticket that was transferred: by the mailed link, or by an account with a proved address.

The link works without an account: then a guest is made whose address it proves, and its browser is signed in
as that guest. If the address is an account's, the account sees the guest's tickets, too; a link that is valid
for months must not sign in to the account itself.

A ticket of a show in a pod is in another database than the link:

    look at the link ─► home: guest, if they have no account ─► pod: accept, by one row ─► home: end the link

Of two browsers with one link, the ticket's row lets one accept. A process that dies before the last step
leaves a link that the same account may use again, and no other: the ticket waits for no one any more.
"""

from collections.abc import Callable

from holdfast.accounts import LinkGone, MailToken, MailTokens, Purpose, Session, Sessions
from holdfast.engines.postgres import Postgres, Transaction
from holdfast.tickets.issued import IssuedTicket
from holdfast.tickets.transfer import Transfers

PodOf = Callable[[int], tuple[Postgres, Transfers] | None]


class Acceptance:
    def __init__(
        self,
        postgres: Postgres,
        transfers: Transfers,
        tokens: MailTokens,
        sessions: Sessions,
        pod_of: PodOf | None = None,
    ) -> None:
        """`pod_of`: where the tickets of a show are, if not in this database. None: all are here."""
        self._postgres = postgres
        self._transfers = transfers
        self._tokens = tokens
        self._sessions = sessions
        self._pod_of = pod_of

    async def accept(self, place: tuple[int, int], account_id: int, proved_email: str | None) -> IssuedTicket:
        async with self._postgres.transaction() as tx:
            return await self._transfers.accept(tx, place, account_id=account_id, email=proved_email)

    async def accept_by_link(self, text: str, account_id: int) -> IssuedTicket:
        """For the account that is signed in, whatever its address."""
        if (elsewhere := await self._find_elsewhere(text)) is not None:
            return await self._accept_elsewhere(*elsewhere, text, account_id)
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.CLAIM)
            return await _accept(self._transfers, tx, token, account_id)

    async def accept_in_browser(
        self, text: str, session: Session | None, *, locale: str, device: str
    ) -> tuple[IssuedTicket, str | None]:
        """The ticket and, where the browser had no session, the cookie of a new one."""
        if (elsewhere := await self._find_elsewhere(text)) is not None:
            (database, transfers), token = elsewhere
            async with database.transaction() as tx:  # a link that is out of date makes no guest
                await transfers.check_offer(tx, _place(token), token.email, token.edition)
            async with self._postgres.transaction() as tx:
                account_id, cookie = await self._recipient(tx, token, session, locale, device)
            return await self._accept_elsewhere(*elsewhere, text, account_id), cookie
        async with self._postgres.transaction() as tx:
            token = await self._tokens.use(tx, text, Purpose.CLAIM)
            _place(token)
            account_id, cookie = await self._recipient(tx, token, session, locale, device)
            ticket = await _accept(self._transfers, tx, token, account_id)
        return ticket, cookie

    async def _recipient(
        self, tx: Transaction, token: MailToken, session: Session | None, locale: str, device: str
    ) -> tuple[int, str | None]:
        """(account, the cookie of a new session)"""
        if session is None:
            return await self._sessions.open_proved_guest(tx, token.email, locale, device)
        if session.is_guest and session.contact_email is None:
            await self._sessions.prove_guest(tx, session.account_id, token.email)
        return session.account_id, None

    async def _find_elsewhere(self, text: str) -> tuple[tuple[Postgres, Transfers], MailToken] | None:
        """Without pods no statement."""
        if self._pod_of is None:
            return None
        token = await self._tokens.look(text)
        if token.purpose is not Purpose.CLAIM:
            raise LinkGone
        pod = self._pod_of(_place(token)[0])
        return None if pod is None else (pod, token)

    async def _accept_elsewhere(
        self, pod: tuple[Postgres, Transfers], token: MailToken, text: str, account_id: int
    ) -> IssuedTicket:
        database, transfers = pod
        async with database.transaction() as tx:
            ticket = await _accept(transfers, tx, token, account_id)
        async with self._postgres.transaction() as tx:
            await self._tokens.end(tx, text, Purpose.CLAIM)
        return ticket


async def _accept(transfers: Transfers, tx: Transaction, token: MailToken, account_id: int) -> IssuedTicket:
    return await transfers.accept(
        tx, _place(token), account_id=account_id, email=token.email, edition=token.edition
    )


def _place(token: MailToken) -> tuple[int, int]:
    """Show and serial of the ticket. Raises LinkGone."""
    if token.show_id is None or token.number is None:
        raise LinkGone
    return token.show_id, token.number
