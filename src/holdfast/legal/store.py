"""Legal texts in the ledger; which versions are in force, as this process last read it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from holdfast.engines.batch import Batcher
from holdfast.engines.postgres import Postgres, Queries, Queryable, require_row
from holdfast.legal.errors import NoSuchText
from holdfast.legal.text import HOUSE, AgreedText, LegalBody, LegalKind, LegalPage, LegalText, TermsInForce
from holdfast.web.audit_log import AuditEntry, record

Q = Queries("holdfast.legal")


class Legal:
    def __init__(self, postgres: Postgres, *, batch_max: int, waiting_max: int) -> None:
        self._postgres = postgres
        self._in_force: Mapping[tuple[int, str], LegalText] = {}
        self._look: Batcher[int, TermsInForce] = Batcher(
            self._terms_of_shows, batch_max=batch_max, waiting_max=waiting_max
        )

    async def refresh(self) -> int:
        """A job of every web process."""
        self._in_force = await self._load_in_force(self._postgres)
        return 0

    async def _load_in_force(self, on: Queryable) -> dict[tuple[int, str], LegalText]:
        return {
            (row["organisation_id"], row["kind"]): LegalText(
                row["organisation_id"], LegalKind(row["kind"]), row["version"]
            )
            for row in await on.fetch(Q.in_force)
            if not row["is_withdrawn"]
        }

    def links(self, organisation_id: int = HOUSE) -> list[LegalText]:
        """The texts in force, for the foot of a page."""
        found = (self._in_force.get((organisation_id, kind)) for kind in LegalKind)
        return [text for text in found if text is not None]

    async def terms_of_house(self) -> TermsInForce:
        """What a person agrees to who signs up."""
        text = (await self._load_in_force(self._postgres)).get((HOUSE, LegalKind.TERMS))
        return TermsInForce([text] if text is not None else [])

    def terms_of_show(self, show_id: int) -> asyncio.Future[TermsInForce]:
        """What a buyer agrees to: read again, so that no one agrees to what is no longer in force."""
        return self._look(show_id)

    async def _terms_of_shows(self, show_ids: Sequence[int]) -> list[TermsInForce]:
        texts: dict[int, list[LegalText]] = {show_id: [] for show_id in show_ids}
        for row in await self._postgres.fetch(Q.terms_of_shows, list(texts)):
            texts[row["show_id"]].append(LegalText(row["organisation_id"], LegalKind.TERMS, row["version"]))
        return [TermsInForce(texts[show_id]) for show_id in show_ids]

    async def agree_to_show(
        self, account_id: int, agreed: Sequence[AgreedText], key: tuple[int, int]
    ) -> None:
        """What a buyer agrees to, for a booking (show, number). TermsChanged if other terms are in force."""
        terms = await self.terms_of_show(key[0])
        terms.check(agreed)
        await self.agree(account_id, terms, *key)

    async def agree(
        self,
        account_id: int,
        terms: TermsInForce,
        show_id: int = 0,
        number: int = 0,
        on: Queryable | None = None,
    ) -> None:
        texts = terms.texts
        if not texts:
            return
        await (on or self._postgres).execute(
            Q.agree,
            account_id,
            [text.organisation_id for text in texts],
            [text.kind for text in texts],
            [text.version for text in texts],
            show_id,
            number,
        )

    async def find(self, organisation_id: int, kind: LegalKind, version: int = 0) -> LegalPage:
        row = await self._postgres.fetchrow(Q.one, organisation_id, kind, version)
        if row is None:
            raise NoSuchText
        return _page(row)

    async def publish(self, organisation_id: int, kind: LegalKind, body: LegalBody) -> LegalPage:
        """A new version. The one before stays readable."""
        async with self._postgres.transaction() as tx:
            await tx.execute(Q.lock, organisation_id)
            texts = msgspec.json.encode(body.texts).decode()
            version = await tx.fetchval(Q.publish, organisation_id, kind, texts)
            row = require_row(await tx.fetchrow(Q.one, organisation_id, kind, version))
            entry = AuditEntry(
                action="legal_text.published",
                subject=("legal_text", kind),
                organiser_id=organisation_id or None,
                after={"kind": kind, "version": version, "languages": sorted(body.texts)},
            )
            await record(tx, entry)
        await self.refresh()
        return _page(row)


def _page(row: Any) -> LegalPage:
    return LegalPage(
        organisation_id=row["organisation_id"],
        kind=LegalKind(row["kind"]),
        version=row["version"],
        published_at=row["published_at"],
        texts=msgspec.json.decode(row["texts"]),
        versions=list(row["versions"]),
    )
