"""Evaluates the few forms of PromQL that alerts on gauges use, on the text of /metrics.

    max by (engine) (abs(holdfast_clock_ahead_seconds)) > 0.5
    max(holdfast_backup_age_seconds) > scalar(max(holdfast_backup_age_max_seconds))
    max(holdfast_worker_missing) > 0 or absent(holdfast_worker_missing)

No rates and no ranges: those need Prometheus itself (prometheus_server.py).
"""

import operator
import re
from collections.abc import Callable, Mapping

from prometheus_client.parser import text_string_to_metric_families

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
TOKEN = re.compile(r'\s*([A-Za-z_][\w]*|\d+(?:\.\d+)?|"[^"]*"|[(){}<>,=])')
GROUPINGS: Mapping[str, Callable[[list[float]], float]] = {"max": max, "min": min, "sum": sum}
COMPARISONS = {">": operator.gt, "<": operator.lt}


def evaluate(expression: str, text: str) -> Vector:
    """The series for which it is true; none: it is not."""
    parser = _Parser(TOKEN.findall(expression), _samples(text))
    found = parser.either()
    assert not parser.rest, f"not a form that we evaluate: {expression}"
    return found


def _samples(text: str) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
    return found


class _Parser:
    def __init__(self, tokens: list[str], samples: dict[str, Vector]) -> None:
        self.rest = tokens
        self._samples = samples

    def either(self) -> Vector:
        found = self.comparison()
        while self.rest[:1] == ["or"]:
            self._take("or")
            other = self.comparison()
            found = found or other
        return found

    def comparison(self) -> Vector:
        left = self.vector()
        if self.rest[:1] not in ([">"], ["<"]):
            return left
        is_true = COMPARISONS[self._next()]
        limit = self.number()
        return {labels: value for labels, value in left.items() if is_true(value, limit)}

    def number(self) -> float:
        if self.rest[0] != "scalar":
            return float(self._next())
        self._take("scalar", "(")
        (value,) = self.vector().values() or (float("nan"),)
        self._take(")")
        return value

    def vector(self) -> Vector:
        name = self._next()
        if name in GROUPINGS:
            return self._grouped(GROUPINGS[name])
        if name in ("abs", "absent"):
            self._take("(")
            inner = self.vector()
            self._take(")")
            if name == "absent":
                return {} if inner else {frozenset(): 1.0}
            return {labels: abs(value) for labels, value in inner.items()}
        return self._samples.get(name, {})

    def _grouped(self, reduce: Callable[[list[float]], float]) -> Vector:
        by = self._names() if self.rest[0] == "by" else ()
        self._take("(")
        inner = self.vector()
        self._take(")")
        groups: dict[Labels, list[float]] = {}
        for labels, value in inner.items():
            groups.setdefault(frozenset(pair for pair in labels if pair[0] in by), []).append(value)
        return {labels: reduce(values) for labels, values in groups.items()}

    def _names(self) -> tuple[str, ...]:
        self._take("by", "(")
        found = []
        while (token := self._next()) != ")":
            found += [token] if token != "," else []
        return tuple(found)

    def _next(self) -> str:
        return self.rest.pop(0)

    def _take(self, *tokens: str) -> None:
        for token in tokens:
            assert self._next() == token, f"expected {token}"
