"""holdfast notices list | replay

`cli.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.cli.every_pod import end_incomplete, warn_of_missing
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.notifications.notice import NoticePage

notices = typer.Typer(help="Mail and short messages to buyers.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
STATES = ("queued", "sent", "stored", "unsent", "obsolete", "dead", "all")
PAGE = 200


@notices.command("list")
def list_notices(
    context: typer.Context,
    state: Annotated[str, typer.Option(help=f"One of {', '.join(STATES)}.")] = "dead",
    limit: Annotated[int, typer.Option(min=1, max=PAGE, help="At most so many.")] = 50,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Show notices, newest first, and what became of them."""
    from holdfast.notifications.every_pod import load_notices
    from holdfast.notifications.notice import NoticesQuery

    if state not in STATES:
        raise OperatorError(f"no such state: {state}; there are {', '.join(STATES)}")
    query = NoticesQuery(state=state, size=limit)  # type: ignore[arg-type]
    found = context.obj(data, lambda app: load_notices(app, query))
    warn_of_missing(found.missing_pods)
    _print_notices(found.notices, as_json)


@notices.command()
def replay(
    context: typer.Context,
    notice: Annotated[str, typer.Argument(help="Its number; of a pod, such as east-42.")] = "",
    all_dead: Annotated[bool, typer.Option("--all-dead", help="All that were given up.")] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Have notices sent again; a worker does it within a second. Exit code 2: a pod was not reached."""
    from holdfast.web.pod_pages import parse_key

    if bool(notice) == all_dead:
        raise OperatorError("name one notice, or say --all-dead")
    key = parse_key(notice)
    if key is None and not all_dead:
        raise OperatorError(f"no such notice: {notice}; see `holdfast notices list --state all`")

    async def again(app: "App") -> tuple[list["NoticePage"], list[str]]:
        from holdfast.notifications.every_pod import replay_dead_notices, replay_notice

        if key is None:
            return await replay_dead_notices(app)
        pod, number = key
        return [await replay_notice(app, number, pod)], []

    pages, away = context.obj(data, again)
    _print_notices(pages, as_json)
    end_incomplete(away)


def _print_notices(pages: list["NoticePage"], as_json: bool) -> None:
    import msgspec

    from holdfast.web.pod_pages import format_key

    if as_json:
        print_json(msgspec.to_builtins(pages))
        return
    for page in pages:
        reason = f": {page.reason}" if page.reason else ""
        key = format_key(page.pod, page.notice_id)
        print(f"{page.state:<6} {key}  {page.kind} to {page.address} by {page.channel}{reason}")
    print(f"{len(pages)} notices")
