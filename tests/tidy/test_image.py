"""The rules about the files and settings of the image; `python -m tools.image` builds it and applies them."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.tidy.deploy_files import DEPLOY, changed, steps
from tests.tidy.tree import ROOT, written
from tools.image_checks import ACCOUNT, BUILDERS, added, size_mb, weak_config, weak_files

STEPS = steps((DEPLOY / "Dockerfile").read_text())
KEY = f"-----BEGIN PRIVATE KEY-----\n{'A' * 64}\n"


def config() -> dict[str, Any]:
    """What the Dockerfile says about how the image is run."""
    last = dict(STEPS[max(index for index, (word, _) in enumerate(STEPS) if word == "FROM") :])
    settings = [one for word, rest in STEPS if word == "ENV" for one in rest.split()]
    return {
        "User": last["USER"],
        "Entrypoint": msgspec.json.decode(last["ENTRYPOINT"], type=list[str]),
        "Cmd": msgspec.json.decode(last["CMD"], type=list[str]),
        "Healthcheck": {"Test": ["CMD", *msgspec.json.decode(last["HEALTHCHECK"].partition("CMD ")[2])]},
        "Volumes": {last["VOLUME"]: {}},
        "Env": settings,
    }


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """An image and its base, as they should be, but for owners that only root can give."""
    root, base = tmp_path / "image", tmp_path / "base"
    for tree in (root, base):
        written(tree, {"bin/sh": "", "etc/passwd": "root"})
        (tree / "opt").mkdir()
        os.utime(tree / "bin/sh", (0, 0))
    written(root, {"etc/passwd": "root and ours", "opt/holdfast/bin/holdfast": "program"})
    for path in root.rglob("*"):
        path.chmod(path.stat().st_mode & ~0o022)
    return root, base


def complaints(root: Path, base: Path) -> list[str]:
    return [one for one in weak_files(root, base) if "belong" not in one or os.geteuid() == 0]


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            ("User", None, "it runs as root"),
            ("User", "holdfast", "it runs as holdfast"),
            ("Entrypoint", ["sh", "-c", "holdfast"], "its entry point is ['sh', '-c', 'holdfast']"),
            ("Cmd", ["demo"], "it starts ['demo']"),
            ("Healthcheck", None, "it has no health check that runs without a shell"),
            ("Healthcheck/Test", ["CMD-SHELL", "true"], "it has no health check that runs without a shell"),
            ("Volumes", {}, "its volumes are []"),
            ("Env/0", "HOLDFAST_TOTP_KEY=a", "HOLDFAST_TOTP_KEY is in its environment"),
            ("Env/0", "HOLDFAST_DATABASE_URL=a", "HOLDFAST_DATABASE_URL is in its environment"),
        ],
    )
    def test_a_weak_setting_is_found(self, path: str, value: Any, complaint: str) -> None:
        assert list(weak_config(changed(config(), path, value))) == [complaint]

    @pytest.mark.parametrize(
        ("name", "text", "mode", "complaint"),
        [
            ("opt/holdfast/bin/helper", "", 0o4755, "/opt/holdfast/bin/helper: it runs with rights that"),
            ("bin/sh", "", 0o2755, "/bin/sh: it runs with rights that"),
            ("opt/holdfast/lib/a.py", "", 0o646, "/opt/holdfast/lib/a.py: the account can write it"),
            ("opt/holdfast/lib/a.py", KEY, 0o644, "/opt/holdfast/lib/a.py: it has a private key"),
            ("opt/holdfast/lib/pip-24.0.dist-info", "", 0o644, "only the build needs it"),
            ("srv/cache/pip", "", 0o600, "/srv: the base does not have it"),
            ("bin/sh", "another", 0o755, "/bin/sh: the base does not have it"),
            ("bin/gcc", "", 0o755, "/bin/gcc: the base does not have it"),
        ],
    )
    def test_a_weak_file_is_found(
        self, trees: tuple[Path, Path], name: str, text: str, mode: int, complaint: str
    ) -> None:
        root, base = trees
        written(root, {name: text})
        for folder in (root / name).parents:
            if root in folder.parents:
                folder.chmod(0o755)
        (root / name).chmod(mode)

        assert any(complaint in one for one in complaints(root, base))

    @pytest.mark.parametrize("name", ["gcc", "cc", "x86_64-linux-gnu-gcc-12", "g++", "ld", "make", "rustc"])
    def test_tools_of_a_build_are_known(self, name: str) -> None:
        assert BUILDERS.fullmatch(name)

    @pytest.mark.parametrize("name", ["ldd", "python", "bash", "makedb", "gold-digger", "as-of"])
    def test_other_programs_are_not_taken_for_them(self, name: str) -> None:
        assert not BUILDERS.fullmatch(name)


def test_an_image_as_it_should_be_is_left_alone(trees: tuple[Path, Path]) -> None:
    root, base = trees

    assert complaints(root, base) == []


def test_the_size_counts_what_the_base_does_not_have(trees: tuple[Path, Path]) -> None:
    root, base = trees
    ours = frozenset(added(root, base))

    assert size_mb(root, ours) == pytest.approx((len("root and ours") + len("program")) / 1e6)


def test_the_dockerfile_asks_for_an_image_as_it_should_be() -> None:
    assert list(weak_config(config())) == []
    assert f"useradd --uid {ACCOUNT} --gid {ACCOUNT}" in (ROOT / "deploy" / "Dockerfile").read_text()
