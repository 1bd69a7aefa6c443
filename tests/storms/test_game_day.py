"""A game day: ten faults, one by one. Doctor, alert and dashboard name each; then it is removed (R19).

In this process by default; `make gameday` plants them in a box office of processes, under a real Prometheus
if it is installed, and prints a table.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from tests.support.game_day import FAULTS, NAMED_WITHIN_S, Fault, Outcome, Scene, faulty, play
from tests.support.game_day_scenes import FAKETIME, OfficeScene, local_scene, office_scene
from tests.support.prometheus_server import is_installed, prometheus
from tests.support.wait import until
from tests.tidy.deploy_files import DEPLOY, yaml_documents

# The gateway of the tests has a test key, and the doctor says so.
ACCEPTED = {"payment gateway"}


def expressions() -> dict[str, str]:
    (page,) = yaml_documents(DEPLOY / "prometheus" / "alerts.yml")
    return {rule["alert"]: rule["expr"] for group in page["groups"] for rule in group["rules"]}


def find_panel(expression: str) -> str:
    """The dashboard and the panel with a metric of the alert."""
    metrics = set(re.findall(r"holdfast_\w+", expression))
    for path in sorted((DEPLOY / "grafana").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            shown = " ".join(target["expr"] for target in panel["targets"])
            if metrics & set(re.findall(r"holdfast_\w+", shown)):
                return f"{path.stem}: {panel['title']}"
    raise AssertionError(f"no dashboard shows {metrics}")


def playable() -> Sequence[Fault]:
    """Without libfaketime no clock can be turned; in continuous integration it must be there."""
    assert FAKETIME or not os.environ.get("CI"), "apt install libfaketime"
    return [fault for fault in FAULTS if FAKETIME or not fault.name.startswith("clock")]


async def play_all(scene: Scene, faults: Sequence[Fault]) -> list[Outcome]:
    alerts = expressions()
    assert faulty(await scene.doctor()) <= ACCEPTED, await scene.doctor()
    return [await play(scene, fault, alerts[fault.alert], ACCEPTED) for fault in faults]


async def play_here(scene: Scene) -> list[Outcome]:
    """The lag grows while the others are played: it has to be ten seconds."""
    lag, *others, standby = playable()
    await lag.plant(scene)
    alerts = expressions()
    accepted = ACCEPTED | {lag.line}
    outcomes = [await play(scene, fault, alerts[fault.alert], accepted) for fault in others]
    return [*outcomes, *[await play(scene, one, alerts[one.alert], ACCEPTED) for one in (lag, standby)]]


async def play_under_prometheus(scene: OfficeScene, folder: Path) -> list[Outcome]:
    if not is_installed():
        print("Prometheus is not installed: expressions are evaluated on /metrics itself")
        return await play_all(scene, playable())
    async with prometheus(folder, scene.api.base_url.netloc.decode()) as server:
        scene.prometheus = server
        await until(lambda: server.knows("holdfast_worker_missing"))
        return await play_all(scene, playable())


def show(outcomes: list[Outcome]) -> None:
    print(
        "\n| fault | doctor names it after | alert is true after | content again after | next step | panel |"
    )
    print("|---|--:|--:|--:|---|---|")
    for one in outcomes:
        times = (one.named_after_s, one.true_after_s, one.content_after_s)
        cells = " | ".join(f"{seconds:.1f} s" for seconds in times)
        panel = find_panel(expressions()[one.fault.alert])
        print(f"| {one.fault.name} | {cells} | {one.fault.alert}: {one.next_step} | {panel} |")


async def test_every_fault_is_named_with_its_next_step_and_its_alert(tmp_path: Path, is_full: bool) -> None:
    """R19. Ten faults, each within a minute."""
    if is_full:
        async with office_scene(tmp_path) as scene:
            outcomes = await play_under_prometheus(scene, tmp_path)
    else:
        async with local_scene(tmp_path) as scene:
            outcomes = await play_here(scene)
    show(outcomes)
    assert len(outcomes) == len(playable())
    assert max(one.named_after_s for one in outcomes) < NAMED_WITHIN_S
