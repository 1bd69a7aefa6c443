"""deploy/: containers. Settings, commands, ports, volumes and secrets fit together; nothing runs as root."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.config import secret_file_names
from tests.tidy.block_checks import check_holdfast
from tests.tidy.deploy_files import (
    DEPLOY,
    Page,
    changed,
    compose,
    containers,
    manifests,
    our_commands,
    steps,
    texts,
)
from tests.tidy.known_names import setting_names
from tests.tidy.tree import ROOT, assert_no_violations

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
LOCKED = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
# Its master binds ports 80 and 443 of the host, and gives its workers to an account without rights.
AS_ROOT = {"nginx": {"CHOWN", "NET_BIND_SERVICE", "SETGID", "SETUID"}}
CONNECTIONS_PER_PROCESS = (
    8  # docs/operating/engines.md: HOLDFAST_POSTGRES_POOL_MAX and HOLDFAST_SEARCH_POOL_MAX
)


def unknown_settings(name: str, text: str) -> Iterator[str]:
    known = {f"HOLDFAST_{one.upper()}" for one in setting_names()}
    for word in set(re.findall(r"HOLDFAST_[A-Z_]+[A-Z]", text)) - known:
        yield f"{name}: there is no setting {word}"


# ── Docker Compose ────────────────────────────────────────────────────────────────────


def weak_services(page: Page) -> Iterator[str]:
    """Services that could do more than they need."""
    for name, service in page["services"].items():
        user = str(service.get("user", "0"))
        if user.split(":")[0] == "0" and set(service.get("cap_add", ())) != AS_ROOT.get(name):
            yield f"{name} runs as root"
        if not service.get("read_only"):
            yield f"{name} can write into its image"
        if service.get("cap_drop") != ["ALL"]:
            yield f"{name} keeps capabilities"
        if service.get("security_opt") != ["no-new-privileges:true"]:
            yield f"{name} can gain privileges"
        if "healthcheck" not in service and "HEALTH_URL" not in service.get("environment", {}):
            yield f"{name} has no health check"
        for port in service.get("ports", ()):
            if not port.startswith("127.0.0.1:"):
                yield f"{name} publishes {port} to every network"


def loose_ends(page: Page) -> Iterator[str]:
    """Names that are used and not declared, declared and not used, or that do not fit together."""
    used: dict[str, set[str]] = {"volumes": set(), "networks": set(), "secrets": set()}
    for name, service in page["services"].items():
        used["networks"] |= set(service.get("networks", ()))
        used["secrets"] |= set(service.get("secrets", ()))
        mounts = [mount.split(":")[0] for mount in service.get("volumes", ())]
        used["volumes"] |= {mount for mount in mounts if not mount.startswith(("/", "."))}
        yield from (
            f"{name} needs {one}" for one in service.get("depends_on", {}).keys() - page["services"].keys()
        )
        yield from (f"{name}: {end}" for end in secrets_not_mounted(service))
        yield from (f"{name}: {end}" for end in ports_that_differ(service))
    for kind, names in used.items():
        for one in names ^ page.get(kind, {}).keys():
            yield f"{one} is not both used and declared in {kind}"


def secrets_not_mounted(service: Page) -> Iterator[str]:
    mounted = {f"/run/secrets/{secret}" for secret in service.get("secrets", ())}
    given = {value for name, value in service.get("environment", {}).items() if name.endswith("_FILE")}
    yield from (f"{path} is not mounted" for path in given - mounted)


def ports_that_differ(service: Page) -> Iterator[str]:
    """Where the command listens, the health check looks and a port is published from."""
    command = service.get("command", [])
    settings = service.get("environment", {})
    address = settings.get("HOLDFAST_WORK_ADDRESS", "").rpartition(":")[2]
    listens = {command[command.index("--port") + 1]} if "--port" in command else {address} - {""}
    looked_at = {url.split("/")[2].split(":")[1] for url in [settings.get("HEALTH_URL")] if url}
    published = {port.rpartition(":")[2] for port in service.get("ports", ())}
    for port in (looked_at | published) - listens:
        yield f"it does not listen on {port}"


# ── Dockerfile ────────────────────────────────────────────────────────────────────────


def weak_steps(dockerfile: str, ignored: str, root: Path = ROOT) -> Iterator[str]:
    found = steps(dockerfile)
    last = found[max(index for index, (word, _) in enumerate(found) if word == "FROM") :]
    users = [rest for word, rest in last if word == "USER"]
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        yield "the image runs as root, or as a user without a number"
    if len([word for word, _ in found if word == "FROM"]) < 2:
        yield "the image has what only its build needs"
    if not [rest for word, rest in last if word == "HEALTHCHECK"]:
        yield "there is no health check"
    for word, rest in found:
        if word == "ADD":
            yield "ADD unpacks and downloads: use COPY"
        for install in re.findall(r"pip install [^&]+", rest if word == "RUN" else ""):
            if "--require-hashes" not in install and "--no-index" not in install:
                yield f"{install.strip()} takes what it gets"
    allowed = {line[1:] for line in ignored.splitlines() if line.startswith("!")}
    if "*" not in ignored.splitlines():
        yield "the build is sent more than it needs"
    for source in sources(found):
        if source not in allowed or not (root / source).exists():
            yield f"{source} is not there, or not sent to the build"
    yield from (f"{name} is sent to the build and not used" for name in allowed - set(sources(found)))


def sources(found: list[tuple[str, str]]) -> Iterator[str]:
    for word, rest in found:
        if word == "COPY" and "--from" not in rest:
            yield from rest.split()[:-1]


# ── Kubernetes ────────────────────────────────────────────────────────────────────────


def weak_pods(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        pod = page["spec"].get("template", {}).get("spec", {})
        for container in containers(page):
            name, held = container["name"], container.get("securityContext", {})
            if not pod["securityContext"].get("runAsNonRoot"):
                yield f"{name} may run as root"
            if pod["securityContext"].get("seccompProfile") != {"type": "RuntimeDefault"}:
                yield f"{name} may call everything of the kernel"
            if pod.get("automountServiceAccountToken") is not False:
                yield f"{name} gets a token of the cluster"
            if not held.get("readOnlyRootFilesystem") or held.get("allowPrivilegeEscalation") is not False:
                yield f"{name} can write into its image, or gain privileges"
            if held.get("capabilities") != {"drop": ["ALL"]}:
                yield f"{name} keeps capabilities"
            if not {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys():
                yield f"{name} has no health checks"
            if "memory" not in container["resources"]["limits"] or "cpu" in container["resources"]["limits"]:
                yield f"{name}: limit memory, and not the processor: that would stop requests"


def loose_manifests(pages: list[Page]) -> Iterator[str]:
    services = {page["metadata"]["name"]: page["spec"] for page in pages if page["kind"] == "Service"}
    pods = [page["spec"]["template"] for page in pages if page["kind"] == "Deployment"]
    for page in pages:
        name, spec = f"{page['kind']} {page['metadata']['name']}", page["spec"]
        wanted = spec.get("podSelector", {}).get("matchLabels") or (
            spec["selector"].get("matchLabels", spec["selector"]) if "selector" in spec else None
        )
        if wanted and not any(wanted.items() <= pod["metadata"]["labels"].items() for pod in pods):
            yield f"{name} selects no pod"
        for backend in re.findall(r"'service': \{'name': '([\w-]+)'", str(spec)):
            if backend not in services:
                yield f"{name} sends requests to {backend}, which is not there"
        for container in containers(page):
            yield from (f"{name}: {end}" for end in loose_container(spec["template"], container))


def loose_container(pod: Page, container: Page) -> Iterator[str]:
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    for one in mounts.keys() ^ {volume["name"] for volume in pod["spec"]["volumes"]}:
        yield f"{one} is not both mounted and declared"
    settings = {one["name"]: one["value"] for one in container["env"]}
    for setting, path in settings.items():
        if setting.endswith("_FILE") and Path(path).parent != Path(mounts["secrets"]):
            yield f"{setting} is not in {mounts['secrets']}"
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    looked_at = {container[probe]["httpGet"]["port"] for probe in container if probe.endswith("Probe")}
    yield from (f"there is no port {port}" for port in looked_at - ports.keys())
    words = container["args"]
    listens = (
        words[words.index("--port") + 1] if "--port" in words else settings["HOLDFAST_WORK_ADDRESS"][-4:]
    )
    scraped = pod["metadata"]["annotations"]["prometheus.io/port"]
    if {int(listens), int(scraped)} != set(ports.values()):
        yield f"it listens on {listens}, is scraped on {scraped} and declares {ports}"


class TestTheRulesCanFail:
    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            ("services/serve/user", "0:0", "serve runs as root"),
            ("services/valkey/user", None, "valkey runs as root"),
            ("services/nginx/cap_add", ["SYS_ADMIN"], "nginx runs as root"),
            ("services/work/read_only", False, "work can write into its image"),
            ("services/postgres/cap_drop", None, "postgres keeps capabilities"),
            ("services/postgres/security_opt", None, "postgres can gain privileges"),
            ("services/valkey/healthcheck", None, "valkey has no health check"),
            ("services/serve/ports", ["8000:8000"], "serve publishes 8000:8000 to every network"),
        ],
    )
    def test_a_weak_service_is_found(self, path: str, value: Any, complaint: str) -> None:
        assert list(weak_services(changed(compose(), path, value))) == [complaint]

    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            ("services/serve/depends_on", {"gone": {}}, "serve needs gone"),
            ("services/serve/ports", ["127.0.0.1:80:81"], "serve: it does not listen on 81"),
            ("services/work/environment/HEALTH_URL", "http://127.0.0.1:1/x", "work: it does not listen on 1"),
            (
                "services/serve/environment/HOLDFAST_MAIL_URL_FILE",
                "/run/secrets/m",
                "/run/secrets/m is not mounted",
            ),
            ("secrets/totp_key", None, "totp_key is not both used and declared in secrets"),
            ("volumes/more", {}, "more is not both used and declared in volumes"),
            ("services/valkey/networks", ["abroad"], "abroad is not both used and declared in networks"),
        ],
    )
    def test_a_loose_end_is_found(self, path: str, value: Any, complaint: str) -> None:
        (found,) = loose_ends(changed(compose(), path, value))

        assert complaint in found

    @pytest.mark.parametrize(
        ("before", "after", "complaint"),
        [
            ("USER 10001:10001", "USER holdfast", "runs as root, or as a user without a number"),
            ("--require-hashes ", "", "takes what it gets"),
            ("HEALTHCHECK ", "ONBUILD HEALTHCHECK ", "there is no health check"),
            ("COPY src src", "COPY src docs src/", "docs is not there, or not sent to the build"),
            ("COPY src src", "ADD src src", "ADD unpacks"),
        ],
    )
    def test_a_weak_step_is_found(self, before: str, after: str, complaint: str) -> None:
        assert before in DOCKERFILE
        ignored = (DEPLOY / "Dockerfile.dockerignore").read_text()

        found = list(weak_steps(DOCKERFILE.replace(before, after), ignored))

        assert complaint in found[0]

    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            ("0/spec/template/spec/securityContext/runAsNonRoot", False, "serve may run as root"),
            (
                "0/spec/template/spec/containers/0/securityContext/readOnlyRootFilesystem",
                False,
                "into its image",
            ),
            ("0/spec/template/spec/containers/0/livenessProbe", None, "serve has no health checks"),
            ("0/spec/template/spec/containers/0/resources/limits/cpu", "1", "limit memory"),
        ],
    )
    def test_a_weak_pod_is_found(self, path: str, value: Any, complaint: str) -> None:
        (found,) = weak_pods(changed(manifests(), path, value))

        assert complaint in found

    @pytest.mark.parametrize(
        ("path", "value", "complaint"),
        [
            ("0/spec/template/spec/containers/0/args/4", "8001", "it listens on 8001"),
            ("0/spec/template/spec/containers/0/env/0/value", "/x", "HOLDFAST_DATABASE_URL_FILE is not in"),
            ("0/spec/template/spec/containers/0/readinessProbe/httpGet/port", "www", "there is no port www"),
            ("1/spec/selector", {"app": "x"}, "Service holdfast-web selects no pod"),
            ("1/metadata/name", "x", "sends requests to holdfast-web, which is not there"),
        ],
    )
    def test_a_loose_manifest_is_found(self, path: str, value: Any, complaint: str) -> None:
        assert complaint in next(loose_manifests(changed(manifests(), path, value)))

    def test_a_setting_that_is_not_there_is_found(self) -> None:
        text = "HOLDFAST_WINGS=2 HOLDFAST_BATCH_MAX HOLDFAST_MAIL_URL_FILE HOLDFAST_GATEWAY_FILE"

        assert len(list(unknown_settings("a", text))) == 2


def test_every_setting_exists() -> None:
    assert_no_violations(end for name, text in texts() for end in unknown_settings(name, text))


def test_every_command_exists_with_its_options() -> None:
    commands = list(our_commands())

    assert {words[0] for _, words in commands} >= {"serve", "work", "migrate", "backup", "audit", "doctor"}
    assert_no_violations(
        f"{where}: {end}" for where, words in commands for end in check_holdfast(list(words))
    )


def test_services_run_with_no_more_rights_than_they_need() -> None:
    assert_no_violations(weak_services(compose()))


def test_services_fit_together() -> None:
    assert_no_violations(loose_ends(compose()))


def test_the_services_leave_the_engine_enough_connections() -> None:
    services = compose()["services"]
    command = services["serve"]["command"]
    processes = int(command[command.index("--workers") + 1]) + 1
    (limit,) = re.findall(r"max_connections=(\d+)", str(services["postgres"]["command"]))

    assert int(limit) >= CONNECTIONS_PER_PROCESS * processes + 20


def test_the_proxy_that_is_trusted_is_the_gateway_of_the_bridge() -> None:
    page = compose()
    (network,) = page["networks"]["outside"]["ipam"]["config"]

    assert page["services"]["serve"]["environment"]["HOLDFAST_TRUSTED_PROXIES"] == network["gateway"]
    assert "server 127.0.0.1:8000 " in (DEPLOY / "nginx.conf").read_text()
    assert page["services"]["serve"]["ports"] == ["127.0.0.1:8000:8000"]


def test_further_secrets_reach_all_services_that_read_them() -> None:
    base, added = compose(), compose(DEPLOY / "compose.stripe.yaml")

    assert added["services"].keys() == {"serve", "work", "command"} < base["services"].keys()
    for service in added["services"].values():
        assert list(secrets_not_mounted(service)) == []
        assert set(service["secrets"]) == added["secrets"].keys()
        assert service["environment"].keys() <= secret_file_names().keys()


def test_the_image_is_built_from_the_lock_file_and_does_not_run_as_root() -> None:
    assert_no_violations(weak_steps(DOCKERFILE, (DEPLOY / "Dockerfile.dockerignore").read_text()))


def test_the_image_has_the_tested_versions_and_the_sdks_of_gateways_and_buses() -> None:
    run, image, dev = (
        dict(LOCKED.findall((ROOT / "requirements" / f"{name}.txt").read_text()))
        for name in ("run", "image", "dev")
    )

    assert run.items() <= image.items() <= dev.items()
    assert {"stripe", "razorpay", "nats-py", "aiokafka"} <= image.keys() - run.keys()


def test_the_health_check_of_the_image_can_be_run() -> None:
    (check,) = [rest for word, rest in steps(DOCKERFILE) if word == "HEALTHCHECK"]
    program, option, code = msgspec.json.decode(check.partition("CMD ")[2], type=list[str])

    assert (program, option) == ("python", "-c")
    compile(code, "HEALTHCHECK", "exec")
    assert "HEALTH_URL=http://127.0.0.1:8000/healthz" in DOCKERFILE


def test_pods_run_with_no_more_rights_than_they_need() -> None:
    assert_no_violations(weak_pods(manifests()))


def test_manifests_fit_together() -> None:
    assert_no_violations(loose_manifests(manifests()))
