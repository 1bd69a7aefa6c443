"""/desk/…/legal: legal texts of the house or of an organisation, with preview and versions."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from starlette.requests import Request
from starlette.responses import Response

from holdfast.accounts import LANGUAGES
from holdfast.desk.access import OF_HOUSE, DeskTable, get_desk
from holdfast.desk.frame import render_desk
from holdfast.legal import (
    HOUSE,
    VERSION_BYTES_MAX,
    LegalBody,
    LegalKind,
    LegalPage,
    NoSuchText,
    parse_blocks,
    parse_kind,
)
from holdfast.site.pages import get_localiser, read_form, redirect
from holdfast.web.responses import query
from holdfast.web.routing import get_app

Typed = Annotated[str, Meta(max_length=200_000)]
desk = DeskTable()
house = DeskTable(OF_HOUSE)


class TextQuery(Struct):
    text: Annotated[str, Meta(max_length=20)] = ""  # a LegalKind; empty: the list of all


class TextForm(Struct):
    text: Annotated[str, Meta(max_length=20)] = ""
    act: Literal["preview", "publish", "withdraw"] = "preview"
    en: Typed = ""
    de: Typed = ""
    hi: Typed = ""


@desk.get("/legal", like="publish_organisation_text")
@house.get("/legal", like="publish_legal_text")
async def get_legal(request: Request) -> Response:
    """All texts and what is in force; or one, to be edited."""
    name = query(TextQuery, request).text
    if name:
        kind = parse_kind(name)
        newest = await _find(request, kind)
        return _render_one(request, kind, newest, newest.texts if newest is not None else {})
    texts = [(kind, await _find(request, kind)) for kind in LegalKind]
    return render_desk(
        request, "legal_list.html", "legal", texts=texts, notices=("published", "text_withdrawn")
    )


@desk.post("/legal", like="publish_organisation_text", body_bytes_max=VERSION_BYTES_MAX)
@house.post("/legal", like="publish_legal_text", body_bytes_max=VERSION_BYTES_MAX)
async def post_legal(request: Request) -> Response:
    """Shows what was typed, publishes it as a new version, or withdraws the text."""
    data = await read_form(request, TextForm)
    kind, l10n = parse_kind(data.text), get_localiser(request)
    typed = {each: getattr(data, each).replace("\r\n", "\n") for each in LANGUAGES}
    texts = {each: text for each, text in typed.items() if text}
    try:
        body = msgspec.convert({"texts": {} if data.act == "withdraw" else texts}, LegalBody)
    except msgspec.ValidationError:
        wrong = l10n.t("desk.legal_too_long")
        return _render_one(request, kind, await _find(request, kind), texts, wrong=wrong)
    if data.act == "preview" or (data.act == "publish" and not texts):
        wrong = "" if texts else l10n.t("desk.legal_empty")
        return _render_one(request, kind, await _find(request, kind), texts, wrong=wrong, is_preview=True)
    await get_app(request).legal.publish(_owner(request), kind, body)
    notice = "text_withdrawn" if data.act == "withdraw" else "published"
    return redirect(f"{get_desk(request).path}/legal?notice={notice}")


def _owner(request: Request) -> int:
    here = get_desk(request)
    return here.organisation_id if here.organisation else HOUSE


async def _find(request: Request, kind: LegalKind) -> LegalPage | None:
    """The newest version; None: nothing was published."""
    try:
        return await get_app(request).legal.find(_owner(request), kind)
    except NoSuchText:
        return None


def _render_one(
    request: Request,
    kind: LegalKind,
    newest: LegalPage | None,
    texts: dict[str, str],
    *,
    wrong: str = "",
    is_preview: bool = False,
) -> Response:
    owner = _owner(request)
    return render_desk(
        request,
        "legal.html",
        "legal",
        status=422 if wrong else 200,
        kind=kind,
        newest=newest,
        texts=texts,
        languages=LANGUAGES,
        wrong=wrong,
        previews=[(each, parse_blocks(text)) for each, text in texts.items()] if is_preview else [],
        public_path=f"/organisations/{owner}/legal/{kind}" if owner else f"/legal/{kind}",
    )
