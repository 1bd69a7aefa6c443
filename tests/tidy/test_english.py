"""Plain English: the words that files, commits and decisions avoid, and the form of commit subjects."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, assert_no_violations, files, short, written
from tools.codebase_figures import BANNED_WORDS, ORDINARY

LIST_FILES = {"tools/codebase_figures.py", "tests/tidy/test_english.py"}  # they contain the list itself
TEXT_SUFFIXES = (".py", ".sql", ".lua", ".js", ".css", ".html", ".toml", ".md", ".sh")
TEXT_FOLDERS = {"src", "tests", "docs", "bench", "lab", "tools", "deploy", "examples"}
# Texts that are right as they are: another system's name, a quotation, or a test of the word itself.
ALLOWED = {
    ("src/holdfast/engines/embedded/privilege.py", "nobody"),  # the Unix account
    ("src/holdfast/demo/repertoire.py", "told"),  # blurbs of invented films and plays
    ("src/holdfast/demo/repertoire.py", "asked"),
    ("src/holdfast/demo/repertoire.py", "nobody"),
    ("src/holdfast/demo/repertoire.py", "whoever"),
}
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
BANNED = re.compile(r"\b(" + "|".join(BANNED_WORDS) + r")\b")


def words_of(line: str) -> str:
    """The line in lower case, with identifiers taken apart: `whoTold_me` is three words."""
    return ORDINARY.sub(" ", CAMEL.sub(" ", line).replace("_", " ").lower())


def banned_words(paths: Iterable[Path], root: Path = ROOT) -> Iterator[str]:
    for path in paths:
        name = short(path, root)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for word in BANNED.findall(words_of(line)):
                if (name, word) not in ALLOWED:
                    yield f"{name}:{number} has {word!r}"


def checked_files() -> Iterator[Path]:
    for path in files(*TEXT_SUFFIXES):
        name = short(path)
        is_text = name.split("/")[0] in TEXT_FOLDERS and name not in LIST_FILES
        if is_text:
            yield path


SUBJECT_LENGTH_MAX = 60
REDESIGN = "Lay the packages out flat and type the application"  # subjects before it are in another style
# A subject starts with a verb in its base form; these are the usual ways not to.
NOT_IMPERATIVE = re.compile(
    r"(?!(?:Bring|String|Ring|Embed|Feed|Need|Seed|Speed|Shed|Pass|Process|Address|Focus|Access|Press)\b)"
    r"(?:\w+(?:ed|ing|[^su]s)|An?|The|That|This|These|What|Who|Whoever|Where|When|How|It|We|No|Every|Each)\b"
)


def poor_subjects(subjects: Iterable[str]) -> Iterator[str]:
    for subject in subjects:
        if len(subject) > SUBJECT_LENGTH_MAX:
            yield f"commit subject has {len(subject)} characters: {subject}"
        if not subject[:1].isupper() or subject.endswith("."):
            yield f"commit subject is not capitalised, or ends with a full stop: {subject}"
        if NOT_IMPERATIVE.match(subject):
            yield f"commit subject does not start with an imperative: {subject}"


def git(*words: str, folder: Path = ROOT) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def recent_subjects(folder: Path = ROOT) -> list[str]:
    """Subjects since the redesign, newest first; none outside a checkout or in a shallow one."""
    start = git("log", "--format=%H", "--fixed-strings", f"--grep={REDESIGN}", folder=folder).split()
    return (
        git("log", "--no-merges", "--format=%s", f"{start[-1]}..HEAD", folder=folder).splitlines()
        if start
        else []
    )


DECISION_TITLE = re.compile(r"# (\d{4}) (?!(?:Who|Whoever|What|Where|When|How)\b)([A-Z][^\n]*[^.\n])")
DECISION_TITLE_LENGTH_MAX = 100


def poor_decision_titles(paths: Iterable[Path]) -> Iterator[str]:
    """A decision is found by its title: the number of its file, and a plain sentence."""
    for path in paths:
        title = path.read_text().splitlines()[0]
        found = DECISION_TITLE.fullmatch(title)
        if found is None or not path.name.startswith(found[1]):
            yield f"{path.name}: the title is not its number and a statement: {title}"
        elif len(title) > DECISION_TITLE_LENGTH_MAX or BANNED.search(words_of(title)):
            yield f"{path.name}: the title is too long, or has a banned word: {title}"


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        ("line", "word"),
        [
            ("# nobody waits here", "nobody"),
            ("def told_of(x): ...", "told"),
            ("class WebhooksAsked: ...", "asked"),
            ("KEPT_MAX = 3", "kept"),
            ('"""It is no booking."""', "is no"),
            ("-- a row of ours", "of ours"),
        ],
    )
    def test_a_banned_word_is_found_in_prose_and_in_names(self, tmp_path: Path, line: str, word: str) -> None:
        written(tmp_path, {"a.py": f"x = 1\n{line}\n"})

        assert list(banned_words([tmp_path / "a.py"], tmp_path)) == [f"a.py:2 has {word!r}"]

    @pytest.mark.parametrize(
        "line", ["# There is no show.", "# it is no longer held", "# a basket", "threshold"]
    )
    def test_ordinary_english_is_not(self, tmp_path: Path, line: str) -> None:
        written(tmp_path, {"a.py": line})

        assert list(banned_words([tmp_path / "a.py"], tmp_path)) == []

    @pytest.mark.parametrize(
        "subject",
        [
            "A quiet house is quiet",
            "What a browser says of languages is limited",
            "Fixed the search job",
            "Adds a lease queue",
            "Adding a lease queue",
            "add a lease queue",
            "Add a lease queue.",
            "Add a lease queue that every subject with work to be repeated later uses",
        ],
    )
    def test_a_poor_commit_subject_is_found(self, subject: str) -> None:
        assert len(list(poor_subjects([subject]))) == 1

    def test_an_imperative_is_not(self) -> None:
        assert (
            list(poor_subjects(["Stop the search job from busy-looping", "Pass the scope to editors"])) == []
        )

    @pytest.mark.parametrize(
        "title",
        [
            "# 0007 Who speaks with others is loaded where it speaks",
            "# 0008 Another number",
            "# 0007 What is kept",
            "# 0007 A layout is kept once",
            "Without a number",
        ],
    )
    def test_a_poor_decision_title_is_found(self, tmp_path: Path, title: str) -> None:
        written(tmp_path, {"0007-x.md": f"{title}\n"})

        assert len(list(poor_decision_titles([tmp_path / "0007-x.md"]))) == 1

    def test_a_folder_without_a_history_has_no_subjects(self, tmp_path: Path) -> None:
        assert recent_subjects(tmp_path) == []


def test_no_file_has_a_banned_word() -> None:
    assert_no_violations(banned_words(checked_files()))


def test_commit_subjects_are_short_imperatives() -> None:
    assert_no_violations(poor_subjects(recent_subjects()))


def test_decision_titles_are_plain_statements() -> None:
    assert_no_violations(poor_decision_titles(sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))))
