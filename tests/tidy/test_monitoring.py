"""Alerts and dashboards: the metrics, labels and values they name are in the code; alerts have runbooks."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from holdfast.engines.clocks import CLOCK_OFF_MAX_S
from holdfast.engines.metrics import HELP
from holdfast.engines.redis_memory import FULL_FROM
from holdfast.routes import ROUTES
from holdfast.runtime.check_certificates import DAYS_FAIL, DAYS_WARN
from holdfast.runtime.check_ledger import STANDBY_LAG_MAX_S
from holdfast.runtime.check_pods import BEHIND_MAX_BYTES
from holdfast.runtime.check_services import GATEWAY_SLOW_S
from tests.tidy.deploy_files import DEPLOY, output_of, yaml_documents
from tests.tidy.markdown_pages import anchors
from tests.tidy.metric_names import (
    BY,
    SELECTOR,
    Metric,
    counted,
    matched_values,
    wrong_names,
    wrong_sums,
)
from tests.tidy.tree import ROOT, SRC, assert_no_violations, files, package, written

ALERTS = DEPLOY / "prometheus" / "alerts.yml"
FAILURES = "docs/operating/failures.md"
SEVERITIES = {"page", "ticket"}
# Words of a metric's help that promise that a person will look when it is not 0.
FOR_A_PERSON = re.compile(r"\b(?:person|people) must\b|should be 0|anything but 0|^1: ")


@cache
def own_metrics() -> tuple[Metric, ...]:
    """Of the whole package. Not when this file is imported: every process of a parallel run imports it."""
    return tuple(counted(package().values()))


def rules(path: Path = ALERTS) -> list[dict[str, Any]]:
    (page,) = yaml_documents(path)
    return [rule for group in page["groups"] for rule in group["rules"]]


def poor_rules(found: list[dict[str, Any]], known: set[str]) -> Iterator[str]:
    """Alerts without a runbook, with two of a name, or that do not say how urgent they are."""
    names = [rule["alert"] for rule in found]
    yield from (f"{name} is there twice" for name in set(names) if names.count(name) > 1)
    for rule in found:
        name, notes = rule["alert"], rule["annotations"]
        if notes["runbook_url"] != f"{FAILURES}#{name.lower()}" or name.lower() not in known:
            yield f"{name}: there is no section {FAILURES}#{name.lower()}, or its link leads elsewhere"
        if rule["labels"].get("severity") not in SEVERITIES:
            yield f"{name} is neither for now nor for the next working day"
        if not re.fullmatch(r"\d+[smh]", rule.get("for", "0s")):
            yield f"{name}: for {rule['for']} is not a length of time"
        for label in re.findall(r"\$labels\.(\w+)", notes["summary"]):
            if label != "instance" and label not in grouped_by(rule["expr"]):
                yield f"{name}: its value has no label {label}"


def grouped_by(query: str) -> set[str]:
    return {word.strip() for clause in BY.findall(query) for word in clause.split(",")}


def queries() -> Iterator[tuple[str, str]]:
    """(where, query) of every alert and every panel."""
    for rule in rules():
        yield rule["alert"], rule["expr"]
    for path in files(".json", root=DEPLOY / "grafana"):
        for panel in json.loads(path.read_text())["panels"]:
            yield from ((f"{path.name}: {panel['title']}", target["expr"]) for target in panel["targets"])


def clashing(names: Iterable[str]) -> list[str]:
    """Names that are one in OpenMetrics, where a counter has no `_total`: a scraper refuses the page."""
    times = Counter(name.removesuffix("_total") for name in set(names))
    return [name for name, count in times.items() if count > 1]


class TestTheRulesCanFail:
    CODE = (
        'metrics.add("sold_total", 2, by=name)\n'
        'metrics.observe("wait_seconds", took_s)\n'
        'metrics.measure(f"mails_{state}", 3)\n'
    )

    @pytest.mark.parametrize(
        ("query", "complaint"),
        [
            ("rate(holdfast_sold[5m])", "no metric is called holdfast_sold"),
            ("holdfast_wait_seconds", "no metric is called holdfast_wait_seconds"),
            ('holdfast_sold_total{to="x"}', "holdfast_sold_total has no label to"),
            ("sum by (le) (holdfast_sold_total)", "grouped by le, which is not a label here"),
            ("max by (by) (holdfast_mails_dead)", "grouped by by, which is not a label here"),
        ],
    )
    def test_a_name_that_is_not_in_the_code_is_found(
        self, tmp_path: Path, query: str, complaint: str
    ) -> None:
        metrics = list(counted(package(written(tmp_path, {"a.py": self.CODE})).values()))

        assert list(wrong_names(query, metrics)) == [complaint]

    def test_a_gauge_that_is_added_up_wrongly_is_found(self, tmp_path: Path) -> None:
        code = self.CODE + 'metrics.set("calls", 4)\n'
        metrics = list(counted(package(written(tmp_path, {"a.py": code})).values()))

        assert list(wrong_sums("sum(holdfast_mails_dead)", metrics)) == [
            "over machines, use max of holdfast_mails_dead"
        ]
        assert list(wrong_sums("max (holdfast_calls)", metrics)) == [
            "over machines, use sum of holdfast_calls"
        ]
        assert list(wrong_sums("max by (x) (holdfast_mails_dead) + sum(holdfast_calls)", metrics)) == []

    def test_names_that_are_in_the_code_are_not(self, tmp_path: Path) -> None:
        metrics = list(counted(package(written(tmp_path, {"a.py": self.CODE})).values()))
        query = 'sum by (by) (rate(holdfast_sold_total{by=~"x", job="y"}[5m]))'

        assert list(wrong_names(query, metrics)) == []
        assert list(wrong_names("max(holdfast_mails_dead) > holdfast_wait_seconds_sum", metrics)) == []
        assert list(wrong_names("sum by (le) (rate(holdfast_wait_seconds_bucket[5m]))", metrics)) == []

    @pytest.mark.parametrize(
        ("change", "complaint"),
        [
            ({"alert": "HoldfastWings"}, "there is no section"),
            ({"labels": {"severity": "loud"}}, "neither for now"),
            ({"for": "a while"}, "is not a length of time"),
            ({"expr": "max(holdfast_facts_dead)"}, "its value has no label group"),
        ],
    )
    def test_a_poor_rule_is_found(self, change: dict[str, Any], complaint: str) -> None:
        (rule,) = [rule for rule in rules() if rule["alert"] == "HoldfastFactsDead"]

        (found,) = poor_rules([rule | change], anchors(ROOT / FAILURES))

        assert complaint in found


def test_every_metric_and_label_of_a_query_is_in_the_code() -> None:
    found = list(queries())

    assert len(found) > 60
    metrics = own_metrics()
    assert_no_violations(f"{where}: {end}" for where, query in found for end in wrong_names(query, metrics))
    assert_no_violations(f"{where}: {end}" for where, query in found for end in wrong_sums(query, metrics))


def test_every_value_of_a_label_is_in_the_code() -> None:
    """`outcome="held"`, `process="work"`: texts of a source file. Routes have names of their own."""
    routes = {route.name for route in ROUTES}
    source = "".join(path.read_text() for path in files(".py", ".lua", ".sql", root=SRC))

    for where, query in queries():
        for label, value in matched_values(query):
            is_known = value in routes if label == "route" else f'"{value}"' in source
            assert is_known, f"{where}: {label}={value}"


def test_every_alert_has_its_section_and_every_section_its_alert() -> None:
    sections = anchors(ROOT / FAILURES)

    assert_no_violations(poor_rules(rules(), sections))
    assert {name for name in sections if name.startswith("holdfast")} == {
        rule["alert"].lower() for rule in rules()
    }


def test_every_number_that_people_must_look_at_has_an_alert() -> None:
    alerts = " ".join(rule["expr"] for rule in rules())
    wanted = {name for name, meaning in HELP.items() if FOR_A_PERSON.search(meaning)}

    assert len(wanted) >= 6
    assert [name for name in wanted if f"holdfast_{name}" not in alerts] == []


# The doctor warns or fails beyond it, and the alert fires.
LIMITS = {
    "HoldfastClockOff": CLOCK_OFF_MAX_S,
    "HoldfastStandbyLate": STANDBY_LAG_MAX_S,
    "HoldfastCertificateEnding": DAYS_WARN,
    "HoldfastCertificateUrgent": DAYS_FAIL,
    "HoldfastGatewayLate": GATEWAY_SLOW_S,
    "HoldfastRedisFull": FULL_FROM,
    "HoldfastPodBehind": BEHIND_MAX_BYTES,
}


def test_the_doctor_and_the_alerts_have_the_same_limits() -> None:
    limits = {rule["alert"]: rule["expr"].split()[-1] for rule in rules() if rule["alert"] in LIMITS}

    assert limits == {name: f"{limit:g}" for name, limit in LIMITS.items()}


def test_every_alert_has_a_panel_with_a_metric_of_it() -> None:
    shown = " ".join(query for where, query in queries() if ".json" in where)

    for rule in rules():
        metrics = {name for name, _ in SELECTOR.findall(rule["expr"])}
        assert not metrics or any(f"holdfast_{name}" in shown for name in metrics), rule["alert"]


def test_panels_do_not_overlap_and_name_what_they_group_by() -> None:
    for path in files(".json", root=DEPLOY / "grafana"):
        page = json.loads(path.read_text())
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in page["panels"]]
        assert len(set(places)) == len(places) >= 10
        for target in (target for panel in page["panels"] for target in panel["targets"]):
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown == grouped_by(target["expr"]) - {"le"}, (path.name, target["expr"])


def test_prometheus_accepts_the_rules_the_queries_and_what_is_scraped(tmp_path: Path) -> None:
    panels = [query.replace("$__rate_interval", "5m") for _, query in queries()]
    recorded = [{"record": f"panel_{number}", "expr": query} for number, query in enumerate(panels)]
    (tmp_path / "panels.yml").write_text(json.dumps({"groups": [{"name": "panels", "rules": recorded}]}))

    for words, answer in (
        (("rules", ALERTS), f"SUCCESS: {len(rules())} rules found"),
        (("rules", tmp_path / "panels.yml"), f"SUCCESS: {len(panels)} rules found"),
        (("config", ALERTS.parent / "scrape.yml"), "SUCCESS"),
    ):
        printed = output_of("promtool", "check", *words)
        assert printed is None or (answer in printed and "exit code" not in printed), printed


def test_every_metric_has_a_help_text_and_a_name_of_its_own() -> None:
    names = {metric.name for metric in own_metrics() if metric.name.isidentifier()}

    assert_no_violations(f"{name} has no text in HELP" for name in names - HELP.keys())
    assert_no_violations(f"{name} and {name}_total are one metric" for name in clashing(HELP))
    assert clashing(["mails_total", "mails", "holds_total"]) == ["mails"]
