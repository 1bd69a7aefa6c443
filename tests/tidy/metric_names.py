"""Which metrics the code counts, with their labels, and which ones a query of Prometheus reads."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from holdfast.engines.metrics import HELP
from tests.tidy.tree import Module

COUNTING = {"add", "set", "measure", "observe"}
SELECTOR = re.compile(r"\bholdfast_(\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
BY = re.compile(r"\b(?:by|without)\s*\(([^)]*)\)")
OF_PROMETHEUS = {"job", "instance"}


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of the code; `name` is a pattern where the code puts it together."""

    name: str
    labels: frozenset[str]
    kind: str  # how it is counted: one of COUNTING

    @property
    def is_histogram(self) -> bool:
        return self.kind == "observe"

    def reads_as(self, name: str) -> bool:
        ends = "_(?:bucket|sum|count)" if self.is_histogram else ""
        return bool(re.fullmatch(f"(?:{self.name}){ends}", name))

    def labels_as(self, name: str) -> frozenset[str]:
        return self.labels | {"le"} if name.endswith("_bucket") else self.labels


def counted(modules: Iterable[Module]) -> Iterator[Metric]:
    for module in modules:
        for node in module.nodes:
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="metrics"), attr=attr), args=[first, *_]
                ) if attr in COUNTING:
                    labels = frozenset(word.arg for word in node.keywords if word.arg)
                    labels |= {"pod"} if attr == "measure" else set()  # in a house with pods
                    for name in names_in(first, module):
                        yield Metric(name, labels, attr)
    # The meter itself adds this one to what a process has counted.
    yield Metric("process_cpu_seconds_total", frozenset({"process"}), "add")


def names_in(argument: ast.expr, module: Module) -> Iterator[str]:
    match argument:
        case ast.Constant(value=str(name)):
            yield name
        case ast.JoinedStr(values=parts):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else r"\w+" for part in parts)
        case _:  # a variable: the columns of a query beside the module, if they are known names
            queries = module.path.with_suffix(".sql")
            columns = set(re.findall(r"\bAS (\w+)", queries.read_text())) if queries.exists() else set()
            yield from columns & HELP.keys()


def wrong_names(query: str, metrics: Iterable[Metric]) -> Iterator[str]:
    """Names and labels of a query that the code does not have."""
    known = list(metrics)
    seen: list[frozenset[str]] = []
    for name, matchers in SELECTOR.findall(query):
        found = [metric for metric in known if metric.reads_as(name)]
        if not found:
            yield f"no metric is called holdfast_{name}"
            continue
        labels = frozenset[str]().union(*(metric.labels_as(name) for metric in found))
        seen.append(labels)
        for label, _, _ in MATCHER.findall(matchers):
            if label not in labels | OF_PROMETHEUS:
                yield f"holdfast_{name} has no label {label}"
    for clause in BY.findall(query):
        for label in (word.strip() for word in clause.split(",")):
            if not all(label in labels | OF_PROMETHEUS for labels in seen):
                yield f"grouped by {label}, which is not a label here"


def wrong_sums(query: str, metrics: Iterable[Metric]) -> Iterator[str]:
    """Gauges that a query adds up wrongly over machines: each of them reports the whole of a measure."""
    wanted = {"measure": "max", "set": "sum"}
    for name, _ in SELECTOR.findall(query):
        for kind in {metric.kind for metric in metrics if metric.reads_as(name)} & wanted.keys():
            how = "(?:max|min)" if kind == "measure" else wanted[kind]
            if not re.search(rf"\b{how}\s*(?:by\s*\([^)]*\)\s*)?\(\s*(?:abs\()?holdfast_{name}\b", query):
                yield f"over machines, use {wanted[kind]} of holdfast_{name}"


def matched_values(query: str) -> Iterator[tuple[str, str]]:
    """(label, value) of every comparison with one value."""
    for _, matchers in SELECTOR.findall(query):
        yield from ((label, value) for label, sign, value in MATCHER.findall(matchers) if sign in ("=", "!="))
