"""holdfast simulate onsale, capacity: what a sale would be like and what it needs, before it happens.

The options are made from the fields of `Scenario` and `Workload`, so that each has one definition.
"""

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError
from holdfast.simulation import RehearsalOptions, Scenario, Workload

if TYPE_CHECKING:
    from holdfast.simulation.capacity import Section

Kind = type[Scenario] | type[Workload] | type[RehearsalOptions]

EXTRA = "pip install 'holdfast[simulation]'"
simulate = typer.Typer(help="Simulate what has not happened yet.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
Output = Annotated[Path | None, typer.Option(help="Write a picture to this file, .svg or .png.")]
Table = Annotated[bool, typer.Option("--coefficients", help="Print what it computes with, and its sources.")]


def with_options(
    kind: Kind,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of `act(kind(…), **others)`, with an option for every field of `kind`."""

    def wrap(act: Callable[..., None]) -> Callable[..., None]:
        def command(**options: Any) -> None:
            given = kind(**{each.name: options.pop(each.name) for each in fields(kind)})
            for fault in given.faults():
                raise OperatorError(fault)
            act(given, **options)

        _, *others = inspect.signature(act, eval_str=True).parameters.values()
        parameters = [*_parameters(kind), *(each.replace(kind=each.KEYWORD_ONLY) for each in others)]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in parameters}
        command.__doc__, command.__name__ = act.__doc__, act.__name__
        return command

    return wrap


def _parameters(kind: Kind) -> list[inspect.Parameter]:
    types = get_type_hints(kind)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=types[each.name](each.default),
            annotation=Annotated[types[each.name], typer.Option(help=_help(each.metadata))],
        )
        for each in fields(kind)
    ]


def _help(about: Mapping[str, Any]) -> str:
    why: str = about["why"]
    return f"{why[0].upper()}{why[1:]}."


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
@with_options(Scenario)
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
    print(f"{scenario.people:,} people, {scenario.seats:,} seats")
    for name, value in outcome.rows(found):
        print(f"  {name:<34}{value}")
    terminal.note(f"simulated in {time.perf_counter() - began:.1f} s")


@with_options(Workload)
def capacity(
    workload: Workload, output: Output = None, coefficients: Table = False, as_json: AsJson = False
) -> None:
    """Compute machines, memory, disk, bandwidth and cost of a workload, with the arithmetic line by line."""
    from holdfast.simulation.capacity import compute

    check_output(output, *(["numpy"] if output else []))
    if workload.is_empty and not coefficients:
        raise OperatorError("nothing is demanded: give --people and --seats, --browse-per-s, --users …")
    sections = compute(workload)
    if output:
        from holdfast.simulation.plot import plot_cores

        plot_cores(sections, output)
    if as_json:
        print_json({"workload": asdict(workload), "sections": [asdict(each) for each in sections]})
        return
    if coefficients:
        _print_coefficients()
        return
    _print_sections(sections)


def _print_sections(sections: "list[Section]") -> None:
    for section in sections:
        print(section.name)
        for line in section.lines:
            print(f"  {line}")


def _print_coefficients() -> None:
    from holdfast.simulation.capacity import show
    from holdfast.simulation.coefficients import COEFFICIENTS

    print("Coefficients")
    for name, each in COEFFICIENTS.items():
        print(f"  {name}: {show(each.value)} {each.unit}".rstrip() + f" ({each.source or 'assumed'})")
