"""holdfast rehearse: a small on-sale against a running installation, before the large one."""

import asyncio
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.cli.simulation import AsJson, with_options
from holdfast.engines.errors import OperatorError
from holdfast.simulation import RehearsalOptions

if TYPE_CHECKING:
    from holdfast.simulation.rehearsal import Rehearsed
    from holdfast.simulation.stage import Login

PASSWORD = "REHEARSAL_PASSWORD"
NO_GO = 1  # exit code

Url = Annotated[str, typer.Option(help="Address of the installation.")]
Organiser = Annotated[
    str, typer.Option(help=f"Address of an organiser, who makes the show; the password is in {PASSWORD}.")
]
IsTest = Annotated[
    bool,
    typer.Option("--yes-this-is-a-test-installation", help="It is on another machine, and it is a test."),
]


@with_options(RehearsalOptions)
def rehearse(
    options: RehearsalOptions,
    url: Url = "http://127.0.0.1:8000",
    organiser: Organiser = "",
    is_test: IsTest = False,
    as_json: AsJson = False,
) -> None:
    """Rehearse an on-sale with test accounts and sandbox money: safe rate, bottleneck, go or no-go.

    Exit code 1: no-go. The installation must use the sandbox gateway.
    """
    from holdfast.cli import output as terminal
    from holdfast.simulation import rehearsal

    rehearsal.check_address(url, is_test)
    login = _read_login(organiser)
    if (login is None) == (options.show == 0):
        raise OperatorError("give either --show, or --organiser to make a show")
    with terminal.progress() as progress:
        found = asyncio.run(rehearsal.rehearse(url, options, login, progress))
    if as_json:
        print_json(_page(found))
    else:
        _print(found)
    if not found.verdict.is_go:
        raise typer.Exit(NO_GO)


def _read_login(organiser: str) -> "Login | None":
    if not organiser:
        return None
    from holdfast.simulation.stage import Login

    password = os.environ.get(PASSWORD) or typer.prompt(f"Password of {organiser}", hide_input=True, err=True)
    return Login(organiser, password)


def _page(found: "Rehearsed") -> dict[str, object]:
    from holdfast.simulation.bottleneck import centile

    verdict = found.verdict
    levels = [
        {
            "at_once": level.at_once,
            "per_second": round(level.per_second, 1),
            "p50_ms": {name: round(centile(times, 50) * 1000, 1) for name, times in level.steps.items()},
            "p99_ms": {name: round(centile(times, 99) * 1000, 1) for name, times in level.steps.items()},
            "gateway_ms": round(level.each("gateway_seconds_sum") * 1000, 1),
            "pool_wait_ms": round(level.each("postgres_wait_seconds_sum") * 1000, 1),
            "pool_use_ms": round(level.each("postgres_use_seconds_sum") * 1000, 1),
            "failures": level.failures,
        }
        for level in verdict.levels
    ]
    return {
        "go": verdict.is_go,
        "reasons": verdict.reasons,
        "safe_admission_per_s": round(verdict.safe_admission_per_s, 1),
        "purchases_per_s": round(verdict.purchases_per_s, 1),
        "limit_reached": verdict.is_limit,
        "bottleneck": asdict(verdict.bottleneck),
        "levels": levels,
        "left": found.left,
    }


def _print(found: "Rehearsed") -> None:
    from holdfast.simulation.bottleneck import centile

    verdict = found.verdict
    print(f"buyers  purchases/s  failed  {'p50 and p99 of each step, in ms':<30}")
    for level in verdict.levels:
        times = [
            f"{name} {centile(seconds, 50) * 1000:,.0f} {centile(seconds, 99) * 1000:,.0f}"
            for name, seconds in level.steps.items()
        ]
        print(f"{level.at_once:>6}  {level.per_second:>11.1f}  {level.failed:>6}  {', '.join(times)}")
    least = "" if verdict.is_limit else "at least "
    print(f"highest rate: {least}{verdict.purchases_per_s:,.1f} purchases per second")
    print(f"safe admission rate: {least}{verdict.safe_admission_per_s:,.1f} people per second")
    print(f"bottleneck: {verdict.bottleneck.name}: {verdict.bottleneck.evidence}")
    print(f"  {verdict.bottleneck.advice}")
    print("go" if verdict.is_go else "no-go")
    for reason in verdict.reasons:
        print(f"  {reason}")
    print("left behind: " + ("; ".join(found.left) if found.left else "nothing"))
