"""deploy/: containers, judged by others: the published schemas of Compose and Kubernetes, and kustomize."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.tidy.deploy_files import DEPLOY, Page, changed, environment, manifests, output_of, yaml_pages
from tests.tidy.tree import ROOT, assert_no_violations

# Of one release of Kubernetes, strict: a name that it does not know is refused. tools/kubernetes_schema.py
KUBERNETES = json.loads((ROOT / "tests" / "tidy" / "kubernetes_schema.json").read_text())


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


def manifest_misfits(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        kind = f"{page['apiVersion']} {page['kind']}"
        name = f"{page['kind']} {page['metadata']['name']}"
        if kind not in KUBERNETES["kinds"]:
            yield f"{name}: there is no schema of {kind}: add it to tools/kubernetes_schema.py"
            continue
        schema = {"$ref": f"#/$defs/{KUBERNETES['kinds'][kind]}", "$defs": KUBERNETES["$defs"]}
        for error in Draft202012Validator(schema).iter_errors(page):
            yield f"{name}: {error.json_path}: {error.message}"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("0/spec/replica", 2, "'replica' was unexpected"),
        ("0/spec/replicas", "two", "'two' is not of type"),
        ("0/spec/selector", None, "'selector' is a required property"),
        ("0/spec/template/spec/containers/0/livenessProbe/httpGet/prot", 1, "'prot' was unexpected"),
        ("0/apiVersion", "apps/v1beta1", "there is no schema of apps/v1beta1 Deployment"),
    ],
)
def test_what_kubernetes_would_refuse_is_found(path: str, value: Any, complaint: str) -> None:
    (found,) = manifest_misfits(changed(manifests(), path, value))

    assert complaint in found


def test_manifests_follow_the_published_schemas_of_kubernetes() -> None:
    pages = manifests()

    assert {page["kind"] for page in pages} >= {"Deployment", "Service", "Ingress", "NetworkPolicy"}
    assert_no_violations(manifest_misfits(pages))


def test_kustomize_builds_all_manifests(tmp_path: Path) -> None:
    folder = shutil.copytree(DEPLOY / "kubernetes", tmp_path / "kubernetes")
    shutil.copy(DEPLOY / "holdfast.env.example", folder / "holdfast.env")
    if (built := output_of("kubectl", "kustomize", folder)) is None:
        return

    settings = environment((DEPLOY / "holdfast.env.example").read_text().splitlines())
    pages = yaml_pages(built)
    assert len(pages) == len(manifests()) + 1
    assert_no_violations(manifest_misfits(pages))
    assert re.search(r"image: holdfast:0\.1\.0\n", built)
    assert all(f"  {name}: {value}\n" in built for name, value in settings.items())
