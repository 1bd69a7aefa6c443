"""holdfast migrate: the schema of home and every pod up to date, and the functions of this release back."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.config import Config
from holdfast.engines.errors import OperatorError
from holdfast.runtime.exit_codes import EXPECTED
from holdfast.runtime.secret_files import load_config

if TYPE_CHECKING:
    from holdfast.runtime.house_schema import HouseSteps

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


def migrate(
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done, and do nothing.")
    ] = False,
    own_functions: Annotated[
        bool,
        typer.Option(
            "--own-functions",
            help="Replace functions of a newer release by this one's, after the way back.",
        ),
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Bring the ledger's schema up to date. Safe to run by many at once, and while people buy.

    Pods of HOLDFAST_PODS first, then the home database. Exit code 2: a pod could not be reached.
    """
    if only_plan and own_functions:
        raise OperatorError("give either --plan or --own-functions")
    config = load_config(os.environ)
    config = replace(config, data_dir=str(data)) if data else config
    steps = asyncio.run(_migrate(config, only_plan, own_functions))
    names = [f"{pod}: {name}" if pod else name for pod, some in steps.applied.items() for name in some]
    if as_json:
        away = {"not_reached": steps.away} if steps.away else {}
        print_json({"pending" if only_plan else "applied": names, **away})
    elif not names:
        print("The schema is up to date.")
    else:
        for name in names:
            print(f"{'would apply' if only_plan else 'applied'} {name}")
    if steps.away and not as_json:
        for pod, trouble in steps.away.items():
            print(f"{pod} was not reached: run this again when it is back; {trouble}")
    if steps.away:
        raise typer.Exit(EXPECTED)


async def _migrate(config: Config, only_plan: bool, own_functions: bool) -> "HouseSteps":
    from holdfast.engines import startup_checks as checks
    from holdfast.runtime import house_schema
    from holdfast.runtime.launch import engines_of

    async with engines_of(config, must_exist=only_plan) as config:
        connection = await checks.connect(config.session_url)
        try:
            if own_functions:
                return await house_schema.bring_house_functions_back(config, connection)
            change = house_schema.plan_house if only_plan else house_schema.migrate_house
            return await change(config, connection)
        finally:
            await connection.close()
