"""holdfast replay: the sale of a show as one HTML file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]


def replay(
    context: typer.Context,
    show: Annotated[int, typer.Argument(help="Number of the show.", min=1, max=2**63 - 1)],
    output: Annotated[Path, typer.Option(help="File to write.")],
    language: Annotated[str, typer.Option(help="Of its texts: en, de or hi.")] = "en",
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Write the sale of a show as an animation of its seat map: one HTML file, without personal data."""
    from holdfast.accounts import LOCALES

    if language not in LOCALES:
        raise OperatorError(f"--language: unknown: {language}; choose from {', '.join(LOCALES)}")
    body: bytes = context.obj(data, lambda app: _render(app, show, LOCALES[language][0]))
    try:
        output.write_bytes(body)
    except OSError as error:
        raise OperatorError(f"cannot write {output}: {error.strerror}") from None
    if as_json:
        print_json({"file": str(output), "bytes": len(body)})
    else:
        print(f"wrote {output}: {len(body) // 1000} kB")


async def _render(app: "App", show_id: int, locale: str) -> bytes:
    from holdfast.replay import render_file
    from holdfast.site.templates_env import localiser_for

    return render_file(await app.replays.build(show_id), localiser_for(locale))
