"""holdfast keys rotate, holdfast tickets rotate"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.tickets import Tickets

KEY_ARRIVES_WITHIN_S = 20.0

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]

keys = typer.Typer(help="Keys that sign access tokens.", no_args_is_help=True)
tickets = typer.Typer(help="What is shown at the door.", no_args_is_help=True)


@keys.command("rotate")
def rotate_access_keys(
    context: typer.Context,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Refuse tokens of older keys now, as after a leak.")
    ] = False,
    data: Data = None,
) -> None:
    """Make a new key that signs access tokens. Tokens of older keys stay good until they expire.

    With `--revoke` every access token is refused within seconds; API clients continue with their refresh
    token, and people who are signed in on the site stay so.
    """

    async def act(app: "App") -> int:
        await app.accounts.rotate_key(revoke=revoke)
        return app.config.revocations_refresh_s

    refresh_s = context.obj(data, act)
    if revoke:
        print(f"a new key signs from now on; every older access token is refused within {refresh_s} seconds")
    else:
        print("a new key signs as soon as every process knows it (two minutes)")


@tickets.command("rotate")
def rotate_ticket_keys(
    context: typer.Context,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Refuse codes and links of older keys, as after a leak.")
    ] = False,
    show: Annotated[
        list[int] | None, typer.Option(help="With --revoke: only at this show. [default: at every show]")
    ] = None,
    data: Data = None,
) -> None:
    """Make a new key that signs tickets. What older ones have signed stays good.

    With `--revoke` the codes and links of older keys are refused at the door (`revoked_code`), and owners of
    tickets for shows to come get new ones by e-mail. Gates follow with their next pack. Passes of waiting
    rooms are refused within half a minute, in every process and pod.
    """
    if show and not revoke:
        raise OperatorError("--show is for --revoke: a key that is not revoked signs for every show")

    at_shows: list[int | None] = [*show] if show else [None]

    async def act(app: "App") -> tuple[int, int]:
        sent = [await app.tickets.revoke_keys(show_id) for show_id in at_shows if revoke]
        if not revoke:
            await app.tickets.rotate_key()
        elif app.router.has_pods:
            sent += [await send_in_pods(app, show_id) for show_id in at_shows]
        return len(await app.tickets.keys()), sum(sent)

    key, sent = context.obj(data, act)
    if revoke:
        print(f"key {key} signs from now on; older codes are refused; {sent} owners get new tickets")
    else:
        print(f"key {key} signs from now on, as soon as every process knows it (two minutes)")


async def send_in_pods(app: "App", show_id: int | None) -> int:
    """Owners of tickets of shows in pods get new ones, signed with the key that has arrived there."""
    from holdfast.engines.errors import EngineDown
    from holdfast.pods.waiting import wait_until

    newest, sent = await app.tickets.newest_key(), 0
    for name, pod in app.router.by_name.items():
        if pod.home is None or (show_id is not None and app.router.for_show(show_id) is not pod):
            continue

        async def has_arrived(tickets: "Tickets" = pod.tickets) -> bool:
            return await tickets.newest_key() >= newest

        try:
            await wait_until(has_arrived, KEY_ARRIVES_WITHIN_S)
            sent += await pod.tickets.send_reissued(show_id)
        except (EngineDown, TimeoutError):
            raise OperatorError(
                f"older codes are refused, but the pod {name} cannot be reached: owners of its tickets get "
                "new ones when you run this command again"
            ) from None
    return sent
