"""Legal texts: their kinds, their versions, and the few marks that are known in them. No I/O.

A text is plain. A line that begins with # is a heading, lines that begin with - are a list, an empty line
ends a paragraph; everything else is shown as it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.fields import SOME_LINES
from holdfast.legal.errors import NoSuchText, TermsChanged

HOUSE = 0  # in place of an organisation
TEXT_MAX = 40_000
# A version in ten languages: letters of other scripts take three bytes, or nine in a form.
VERSION_BYTES_MAX = 4_000_000


class LegalKind(StrEnum):
    TERMS = "terms"
    PRIVACY = "privacy"
    IMPRINT = "imprint"
    REFUNDS = "refunds"


def parse_kind(name: str) -> LegalKind:
    """The kind with this name, or NoSuchText."""
    try:
        return LegalKind(name)
    except ValueError:
        raise NoSuchText from None


Text = Annotated[str, Meta(max_length=TEXT_MAX, pattern=SOME_LINES)]
Language = Annotated[str, Meta(pattern=r"^[a-z]{2}$(?!\n)")]


class LegalBody(Struct, forbid_unknown_fields=True, frozen=True):
    """A new version, by language. An empty object withdraws the text; versions before it stay readable."""

    texts: Annotated[dict[Language, Text], Meta(max_length=10, examples=[{"en": "# Terms\n\nBe kind."}])]


class LegalPage(Struct, frozen=True, kw_only=True):
    organisation_id: int  # 0: the house
    kind: LegalKind
    version: int
    published_at: datetime
    texts: dict[str, str]  # by language
    versions: list[int]  # all, the newest first


class LegalQuery(Struct, forbid_unknown_fields=True, frozen=True):
    organisation: Annotated[int, Meta(ge=0, le=2**63 - 1)] = HOUSE  # 0: the house
    version: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0  # 0: the newest


class AgreedText(Struct, forbid_unknown_fields=True, frozen=True):
    """Terms that a person agrees to."""

    version: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    organisation_id: Annotated[int, Meta(ge=0, le=2**63 - 1)] = HOUSE  # 0: the house


Agreed = Annotated[list[AgreedText], Meta(max_length=10, examples=[[{"version": 3}]])]


@dataclass(frozen=True, slots=True)
class LegalText:
    """A version that is in force."""

    organisation_id: int
    kind: LegalKind
    version: int

    @property
    def path(self) -> str:
        owner = f"/organisations/{self.organisation_id}" if self.organisation_id else ""
        return f"{owner}/legal/{self.kind}"


@dataclass(frozen=True, slots=True)
class TermsInForce:
    """What a buyer agrees to: the terms of the house, of the organisation, of both, or none."""

    texts: Sequence[LegalText] = ()

    @property
    def mark(self) -> str:
        """The value of the checkbox: which versions were on the page."""
        return ",".join(f"{text.organisation_id}:{text.version}" for text in self.texts)

    def is_agreed(self, mark: str) -> bool:
        return mark == self.mark

    def check(self, agreed: Sequence[AgreedText]) -> None:
        """TermsChanged unless these are the terms in force, all of them."""
        in_force = {(text.organisation_id, text.version) for text in self.texts}
        if {(one.organisation_id, one.version) for one in agreed} != in_force:
            raise TermsChanged(
                terms=[{"organisation_id": owner, "version": version} for owner, version in sorted(in_force)]
            )


NO_TERMS = TermsInForce()


@dataclass(frozen=True, slots=True)
class TextBlock:
    kind: str  # heading, list, paragraph
    lines: Sequence[str]


def parse_blocks(text: str) -> list[TextBlock]:
    blocks: list[TextBlock] = []
    for line in (each.strip() for each in [*text.splitlines(), ""]):
        kind, words = _classify(line)
        if blocks and blocks[-1].kind == kind != "heading":
            blocks[-1] = TextBlock(kind, [*blocks[-1].lines, words])
        else:
            blocks.append(TextBlock(kind, [words]))
    return [block for block in blocks if block.kind]


def _classify(line: str) -> tuple[str, str]:
    if not line:
        return "", ""
    if line.startswith("#"):
        return "heading", line.lstrip("#").strip()
    if line.startswith("- "):
        return "list", line[2:].strip()
    return "paragraph", line


def choose_text(texts: dict[str, str], language: str) -> tuple[str, str]:
    """(The language, the text): the reader's, else English, else the first there is."""
    for wanted in (language, "en", *sorted(texts)):
        if wanted in texts:
            return wanted, texts[wanted]
    return language, ""
