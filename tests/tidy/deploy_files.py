"""The files in deploy/ as the rules about them read them: YAML, Dockerfile, units of systemd, programs."""

import os
import re
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from tests.tidy.tree import ROOT, files

DEPLOY = ROOT / "deploy"
Page = dict[str, Any]
FROM_CI = ("haproxy", "promtool", "systemd-analyze")  # .ci/run installs them: it must not go on without


def yaml_documents(path: Path) -> list[Page]:
    return yaml_pages(path.read_text())


def yaml_pages(text: str) -> list[Page]:
    """Every document of a text; anchors and merges are resolved."""
    parts = re.split(r"^---$", text, flags=re.MULTILINE)
    return [msgspec.yaml.decode(part, type=dict[str, Any]) for part in parts]


def compose(path: Path = DEPLOY / "compose.yaml") -> Page:
    (page,) = yaml_documents(path)
    return page


def manifests() -> list[Page]:
    """What the kustomization applies."""
    folder = DEPLOY / "kubernetes"
    (kustomization,) = yaml_documents(folder / "kustomization.yaml")
    return [page for name in kustomization["resources"] for page in yaml_documents(folder / name)]


def steps(dockerfile: str) -> list[tuple[str, str]]:
    """(instruction, rest) of every step; a line that ends with a backslash goes on in the next."""
    lines = re.sub(r"^#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines) if word]


def unit(text: str) -> list[tuple[str, str]]:
    """(name, value) of every line of a unit, in order; a name may be there several times."""
    lines = [line for line in text.splitlines() if "=" in line and not line.startswith(("#", ";", "["))]
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def values(lines: list[tuple[str, str]], name: str) -> list[str]:
    return [value for given, value in lines if given == name]


def environment(lines: list[str]) -> dict[str, str]:
    """NAME=value lines, without empty ones and comments."""
    given = [line for line in lines if line.strip() and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in given)}


def texts() -> Iterator[tuple[str, str]]:
    """(name, text) of every file in deploy."""
    for path in files(root=DEPLOY):
        yield str(path.relative_to(ROOT)), path.read_text()


def our_commands() -> Iterator[tuple[str, list[str]]]:
    """(where, words after `holdfast`) of every command that one of the files starts."""
    for word, rest in steps((DEPLOY / "Dockerfile").read_text()):
        if word == "CMD":
            yield "Dockerfile", msgspec.json.decode(rest, type=list[str])
    for name, service in compose()["services"].items():
        if service["image"].startswith("holdfast"):
            yield f"compose.yaml {name}", service["command"]
    for page in manifests():
        for container in containers(page):
            yield f"kubernetes {container['name']}", container["args"]
    for path in sorted((DEPLOY / "systemd").glob("*.service")):
        for line in values(unit(path.read_text()), "ExecStart"):
            for command in re.findall(r"(?:/opt/holdfast/bin/|; )holdfast ([^;']+)", line):
                yield path.name, shlex.split(command)


def containers(manifest: Page) -> list[Page]:
    found: list[Page] = manifest["spec"].get("template", {}).get("spec", {}).get("containers", [])
    return found


def changed(page: Any, path: str, value: Any) -> Any:
    """A copy in which one value is another, or gone: `services/serve/user`."""
    page = deepcopy(page)
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")]
    place = page
    for part in parents:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return page


def output_of(program: str, *words: str | Path, path: str | None = None) -> str | None:
    """What the program printed, and its exit code if it is not 0; None, with a warning, if there is none."""
    found = shutil.which(program, path=path)
    if found is None:
        complaint = f"{program} is not installed: what it checks was not checked"
        assert not (os.environ.get("CI") and program in FROM_CI), complaint
        warnings.warn(complaint, stacklevel=2)
        return None
    done = subprocess.run([found, *words], capture_output=True, text=True, check=False)
    ending = f"\nexit code {done.returncode}" if done.returncode else ""
    return done.stdout + done.stderr + ending
