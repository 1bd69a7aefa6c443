"""holdfast simulate onsale: what a sale would be like, before it is.

The options of a scenario are made from the fields of `Scenario`, so that each has one definition.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError
from holdfast.simulation import Scenario

EXTRA = "pip install 'holdfast[simulation]'"
simulate = typer.Typer(help="Simulate what has not happened yet.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Output = Annotated[Path | None, typer.Option(help="Write a picture to this file, .svg or .png.")]


def with_scenario(act: Callable[..., None]) -> Callable[..., None]:
    """The command `act(scenario, **others)`, with an option for every field of a scenario."""

    def command(**options: Any) -> None:
        names = {each.name for each in fields(Scenario)}
        scenario = build_scenario({name: options.pop(name) for name in names})
        act(scenario, **options)

    own = list(inspect.signature(act, eval_str=True).parameters.values())[1:]
    types = get_type_hints(Scenario)
    made = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default,
            annotation=Annotated[types[each.name], typer.Option(help=_help(each.metadata))],
        )
        for each in fields(Scenario)
    ]
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    signature = inspect.Signature([*made, *own])
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()}
    command.__doc__, command.__name__ = act.__doc__, act.__name__
    return command


def _help(about: Mapping[str, Any]) -> str:
    why: str = about["why"]
    return f"{why[0].upper()}{why[1:]}."


def build_scenario(values: Mapping[str, object]) -> Scenario:
    scenario = Scenario.build(values)
    for fault in scenario.faults():
        raise OperatorError(fault)
    return scenario


def check_output(output: Path | None, *modules: str) -> None:
    """Before minutes of work: is everything installed, and can the picture be written?"""
    from importlib.util import find_spec

    needed = [*modules, *(["matplotlib"] if output else [])]
    if missing := [name for name in needed if find_spec(name) is None]:
        raise OperatorError(f"{' and '.join(missing)} not installed: {EXTRA}")
    if output and output.suffix not in (".svg", ".png"):
        raise OperatorError(f"--output {output}: must end in .svg or .png")
    if output and not output.parent.is_dir():
        raise OperatorError(f"--output {output}: there is no folder {output.parent}")


@simulate.command("onsale")
@with_scenario
def simulate_onsale(scenario: Scenario, output: Output = None, as_json: AsJson = False) -> None:
    """Simulate an on-sale: time to sell out, waits, bots, unsold seats. Same seed, same result."""
    check_output(output, "numpy")
    from holdfast.cli import output as terminal
    from holdfast.simulation import outcome
    from holdfast.simulation.sale import run_sale

    began = time.perf_counter()
    with terminal.progress() as progress:
        record = run_sale(scenario, progress)
    found = outcome.summarize(record)
    if output:
        from holdfast.simulation.plot import plot_sale

        plot_sale(record, output)
    if as_json:
        print_json({"scenario": asdict(scenario), "outcome": found.page()})
        return
    terminal.show_rows(f"{scenario.people:,} people, {scenario.seats:,} seats", outcome.rows(found))
    terminal.note(f"simulated in {time.perf_counter() - began:.1f} s")
