"""holdfast archive: past shows from the ledger to Parquet files."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.archive import Archived

Folder = Annotated[Path, typer.Argument(help="Where the files go: FOLDER/2024-11/show-123/.")]
Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
SHOWS_MAX = 1000


def require_pyarrow() -> None:
    if find_spec("pyarrow") is None:
        raise OperatorError("pyarrow is not installed: pip install 'holdfast[archive]'")


def archive(
    context: typer.Context,
    folder: Folder,
    delete: Annotated[bool, typer.Option(help="Delete what is verified from the ledger.")] = True,
    shows_max: Annotated[int, typer.Option(min=1, help="Per database and run.")] = SHOWS_MAX,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write shows that ended HOLDFAST_ARCHIVE_AFTER_D days ago to Parquet files, and delete their rows.

    Files are read back and compared before anything is deleted. Safe to interrupt and to repeat, while people
    buy. The files have numbers of accounts, and no other personal data.
    """
    require_pyarrow()
    try:  # also when there is nothing to archive yet: an audit reads it every night
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise OperatorError(f"the folder {folder} cannot be made: {error.strerror}") from None
    done: list[Archived] = []

    def note(one: "Archived") -> None:
        done.append(one)
        if not as_json:
            print(f"show {one.show_id}: {one.rows} rows in {one.folder}", flush=True)

    async def act(app: "App") -> None:
        from holdfast.archive import Archiver
        from holdfast.backup import HouseUrls

        urls = {name: each.config.session_url for name, each in app.router.by_name.items()}
        async with HouseUrls(urls.pop(""), urls).connected() as databases:
            archiver = Archiver(databases, folder, version("holdfast"))
            await archiver.run(app.config.archive_after_d, shows_max, deletes=delete, note=note)

    context.obj(data, act)
    if as_json:
        print_json(
            {"shows": [{"show_id": one.show_id, "folder": one.folder, "rows": one.rows} for one in done]}
        )
    else:
        print(
            f"{len(done)} shows archived" if delete else f"{len(done)} shows written; the ledger is as it was"
        )
