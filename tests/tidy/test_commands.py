"""Commands that docs and messages name in passing, such as `holdfast facts retry`, exist and are whole."""

import re
import shlex
from collections.abc import Iterator

import pytest

from tests.tidy.block_checks import check_holdfast
from tests.tidy.tree import ROOT, SRC, assert_no_violations, files, short

MENTION = re.compile(r"`(holdfast [^`\n{…]+)`")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b")
# A command that is only named; an option that it needs is part of its name.
NAMED_ONLY = re.compile(r"Missing argument|requires an argument")


def wrong_mentions(where: str, text: str) -> Iterator[str]:
    for mention in MENTION.findall(text):
        words = shlex.split(PLACEHOLDER.sub("1", mention))[1:]
        for complaint in check_holdfast(words):
            if not NAMED_ONLY.search(complaint):
                yield f"{where}: `{mention}`: {complaint}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("`holdfast fly`", "there is no command holdfast fly"),
        ("`holdfast doctor --wings`", "No such option: --wings"),
        ("`holdfast facts forget`", "Missing option '--group'"),
        ("`holdfast backup create`, `holdfast backup create FILE`, `holdfast pod move SHOW home`", None),
    ],
)
def test_a_wrong_mention_is_found(text: str, complaint: str | None) -> None:
    found = list(wrong_mentions("a", text))

    assert found == [] if complaint is None else complaint in found[0]


def test_commands_that_docs_and_messages_name_exist() -> None:
    paths = [*files(".md"), *files(".py", root=SRC)]
    found = {short(path): path.read_text() for path in paths if path != ROOT / "CHANGELOG.md"}

    assert_no_violations(end for where, text in found.items() for end in wrong_mentions(where, text))
