"""Builds and checks a release; publishes nothing and tags nothing (docs/releasing.md).

    python -m tools.release                              a rehearsal: everything is checked, no file stays
    python -m tools.release --output dist --key FILE     the release, signed with an SSH key

committed files ─► two exports in different folders ─► wheels and source archives, built twice, equal
requirements/image.txt ─► software bill of materials (CycloneDX)
all of them ─► SHA256SUMS ─► SHA256SUMS.sig

Steps that a rehearsal may fail, such as a date in the changelog, are reported as "open"; with --output they
end the release. Tools that no developer needs come from requirements/release.txt, into an environment of
their own.
"""

import argparse
import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

from tools.refused import Refused, exit_code

ROOT = Path(__file__).parents[1]
PROJECTS = {"holdfast": ".", "holdfast-claim": "wheels/claim"}
# Where the version is written, beside pyproject.toml.
VERSIONED = (
    "deploy/Dockerfile",
    "deploy/compose.yaml",
    "deploy/kubernetes/kustomization.yaml",
    "docs/first_house.md",
    "docs/operating/sizes.md",
)
VERSION = re.compile(r"(?:holdfast[:-]|newTag: )(\d+\.\d+\.\d+)")
NAMESPACE = "holdfast-release"  # of the signature
SIGNER = "releases"
SBOM = "holdfast-{version}.cdx.json"


def project_version(root: Path = ROOT) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def find_open_points(root: Path, version: str) -> Iterator[str]:
    """What is still to be done before this version can be released."""
    heading = re.search(
        rf"^## \[{re.escape(version)}\] – (.+)$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    if heading is None:
        yield f"CHANGELOG.md has no section for {version}"
    elif not re.fullmatch(r"\d{4}-\d{2}-\d{2}", heading[1]):
        yield f"CHANGELOG.md: {version} has no date but {heading[1]!r}"
    for name in VERSIONED:
        if wrong := set(VERSION.findall((root / name).read_text())) - {version}:
            yield f"{name} names {', '.join(sorted(wrong))}"
    stem = version.replace(".", "_")
    for tool, suffix in (("write_upgrade_state", "sql"), ("write_statements", "statements")):
        if not (root / "tests" / "stores" / "upgrades" / f"{stem}.{suffix}").exists():
            yield f"run `python -m tools.{tool} {stem}`: later upgrades start from it"


def find_repository_points(root: Path, version: str) -> Iterator[str]:
    if _output("git", "status", "--porcelain", cwd=root):
        yield "there are changes that are not committed; what is built is the last commit"
    if _output("git", "tag", "--list", f"v{version}", cwd=root):
        yield f"v{version} is tagged already"


def export(root: Path, folder: Path) -> Path:
    """The committed files, without anything else that lies in the folder."""
    folder.mkdir(parents=True)
    packed = folder.with_suffix(".tar")
    _run("git", "archive", "--output", str(packed), "HEAD", cwd=root)
    _run("tar", "-xf", str(packed), "-C", str(folder))
    packed.unlink()
    return folder


def build(tree: Path, output: Path) -> list[Path]:
    """Wheel and source archive; the claim library has a wheel only, its files are in the other archive."""
    moment = _output("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    env = {**os.environ, "SOURCE_DATE_EPOCH": moment}
    for name, folder in PROJECTS.items():
        targets = ("-t", "wheel", *(("-t", "sdist") if name == "holdfast" else ()))
        command = (sys.executable, "-m", "hatchling", "build", *targets, "-d", str(output))
        _run(*command, cwd=tree / folder, env=env)
    return sorted(output.iterdir())


def build_twice(work: Path) -> list[Path]:
    """The second time in another folder, with other rights and times: the result must not depend on them."""
    first = build(export(ROOT, work / "first"), work / "built")
    second = export(ROOT, work / "a" / "second")
    for path in second.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (0, 0))
    again = build(second, work / "built-again")
    _, different, missing = filecmp.cmpfiles(
        work / "built", work / "built-again", [path.name for path in first], shallow=False
    )
    if different or missing or len(first) != len(again):
        raise Refused(f"built twice and different: {', '.join(different + missing)}")
    return first


def check_wheel(wheel: Path, version: str) -> None:
    """What an index and an installer read; and no file that does not belong there."""
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (info,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(info).decode())
    for wanted in ("Summary", "License-Expression", "License-File", "Classifier", "Requires-Python"):
        if wanted not in metadata:
            raise Refused(f"{wheel.name} has no {wanted}")
    if metadata["Name"] == "holdfast" and metadata["Version"] != version:
        raise Refused(f"{wheel.name} is not {version}")
    if alien := [
        name for name in names if not name.startswith(("holdfast/", "holdfast-", "holdfast_claim-"))
    ]:
        raise Refused(f"{wheel.name} has {alien[0]}")


def install_tools(folder: Path) -> Path:
    """twine and CycloneDX, with every download compared with its hash."""
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    lock = ROOT / "requirements" / "release.txt"
    _run(
        str(programs / "python"),
        *(
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(lock),
        ),
    )
    return programs


def write_sbom(programs: Path, file: Path) -> None:
    """Of what the image contains: every package with version and hashes, from the lock file. Validated."""
    _run(
        *(str(programs / "cyclonedx-py"), "requirements", str(ROOT / "requirements" / "image.txt")),
        *("--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible", "--validate"),
        *("--output-format", "JSON", "--output-file", str(file)),
    )


def write_sums(folder: Path) -> Path:
    sums = folder / "SHA256SUMS"
    files = sorted(path for path in folder.iterdir() if path != sums)
    sums.write_text(
        "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    )
    return sums


def sign(sums: Path, key: Path) -> None:
    """SHA256SUMS.sig, and a look at it as a user would take it."""
    _run("ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(sums))
    public = _output("ssh-keygen", "-y", "-f", str(key)).strip()
    with tempfile.NamedTemporaryFile("w", suffix=".allowed") as allowed:
        allowed.write(f'{SIGNER} namespaces="{NAMESPACE}" {public}\n')
        allowed.flush()
        verify = ("ssh-keygen", "-q", "-Y", "verify", "-f", allowed.name, "-I", SIGNER, "-n", NAMESPACE)
        with sums.open("rb") as signed:
            subprocess.run(
                [*verify, "-s", f"{sums}.sig"], stdin=signed, check=True, stdout=subprocess.DEVNULL
            )


def release(output: Path, key: Path | None, *, is_final: bool) -> None:
    version = project_version()
    points = [*find_repository_points(ROOT, version), *find_open_points(ROOT, version)]
    for point in points:
        print(f"open  {point}")
    if is_final and points:
        raise Refused(f"{len(points)} points are open")
    with tempfile.TemporaryDirectory(prefix="holdfast-release-") as folder:
        work = Path(folder)
        built = build_twice(work)
        for path in built:
            print(f"ok    {path.name}: {path.stat().st_size:,} bytes, built twice, equal")
            if path.suffix == ".whl":
                check_wheel(path, version)
            shutil.copy2(path, output)
        programs = install_tools(work / "tools")
        _run(str(programs / "twine"), "check", "--strict", *map(str, built))
        print("ok    twine check --strict")
        sbom = output / SBOM.format(version=version)
        write_sbom(programs, sbom)
        packages = sbom.read_text().count('"purl"')
        print(f"ok    {sbom.name}: {packages} packages, valid CycloneDX")
        sums = write_sums(output)
        sign(sums, key or _throwaway_key(work))
        print(f"ok    {sums.name}, signed and verified" + ("" if key else ", with a key for this rehearsal"))
    print(f"next  git tag -s v{version}; then upload: docs/releasing.md")


def _throwaway_key(folder: Path) -> Path:
    key = folder / "key"
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "rehearsal", "-f", str(key))
    return key


def _run(*command: str, cwd: Path = ROOT, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(f"{' '.join(command[:4])} failed: {(done.stderr or done.stdout)[-2000:]}")


def _output(*command: str, cwd: Path = ROOT) -> str:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, help="an empty folder; without it no file stays")
    parser.add_argument("--key", type=Path, help="private SSH key that signs the sums")
    options = parser.parse_args()
    if options.output is None:
        with tempfile.TemporaryDirectory() as folder:
            release(Path(folder), options.key, is_final=False)
    else:
        if options.key is None:
            raise Refused("a release is signed: give --key")
        options.output.mkdir(parents=True)
        release(options.output, options.key, is_final=True)


if __name__ == "__main__":
    sys.exit(exit_code(main))
