"""Commands about what every database of a house has: which one they are about, and which are missing."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.engines.errors import OperatorError
from holdfast.runtime.exit_codes import EXPECTED

if TYPE_CHECKING:
    from holdfast.app import App

PodName = Annotated[
    str, typer.Option("--pod", help="Of a house with pods, only this one; home: the home database.")
]


def choose_pods(app: "App", name: str) -> dict[str, "App"]:
    """By name; the home database has the empty one. All of them, if none is named."""
    from holdfast.web.every_pod import find_pod

    if not name:
        return dict(app.router.by_name)
    pod = find_pod(app, name)
    if pod is None:
        raise OperatorError(f"HOLDFAST_PODS has no pod {name!r}")
    return {pod.pod: pod}


def warn_of_missing(pods: Sequence[str]) -> None:
    if pods:
        print(f"cannot be reached, and missing here: {', '.join(pods)}", file=sys.stderr)


def end_incomplete(pods: Sequence[str]) -> None:
    """Of a command that changes something: exit code 2, if it has to be run again for these."""
    if pods:
        print(f"cannot be reached, run this again when they are back: {', '.join(pods)}", file=sys.stderr)
        raise typer.Exit(EXPECTED)
