"""deploy/: containers, judged by others: the published schema of Compose, and kustomize."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.tidy.deploy_files import DEPLOY, environment, manifests, output_of


def misfits(*paths: Path) -> str:
    """What the published schema of Compose, as check-jsonschema carries it, does not allow."""
    words = ["check_jsonschema", "--builtin-schema", "vendor.compose-spec", *map(str, paths)]
    done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_a_key_that_is_not_in_the_schema_is_found(tmp_path: Path) -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    (tmp_path / "compose.yaml").write_text(text.replace("shm_size: 256mb", "shm_sise: 256mb"))

    assert "shm_sise" in misfits(tmp_path / "compose.yaml")


def test_compose_files_follow_the_published_schema() -> None:
    assert misfits(DEPLOY / "compose.yaml", DEPLOY / "compose.stripe.yaml") == ""


def test_kustomize_builds_all_manifests(tmp_path: Path) -> None:
    folder = shutil.copytree(DEPLOY / "kubernetes", tmp_path / "kubernetes")
    shutil.copy(DEPLOY / "holdfast.env.example", folder / "holdfast.env")
    if (built := output_of("kubectl", "kustomize", folder)) is None:
        return

    settings = environment((DEPLOY / "holdfast.env.example").read_text().splitlines())
    assert built.count("\nkind: ") == len(manifests()) + 1
    assert re.search(r"image: holdfast:0\.1\.0\n", built)
    assert all(f"  {name}: {value}\n" in built for name, value in settings.items())
