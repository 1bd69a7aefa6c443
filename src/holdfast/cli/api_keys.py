"""holdfast api-key list | revoke: for who runs the house, when a key was published. Members use the API."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.cli.accounts import AsJson, Data
from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.organisations.api_key import ListedKey

api_keys = typer.Typer(help="API keys of organisations.", no_args_is_help=True)


@api_keys.command("list")
def list_api_keys(
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(help="The beginning of a key, such as hfk_4kQ7.")] = "",
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List the API keys of all organisations, newest first."""
    found: list[ListedKey] = []

    async def act(app: "App") -> None:
        found.extend(await app.api_keys.list_all(prefix))

    context.obj(data, act)
    if as_json:
        from msgspec import to_builtins

        print_json(to_builtins(found))
        return
    for one in found:
        used = f"used {one.last_used_at:%Y-%m-%d}" if one.last_used_at else "never used"
        ends = f", ends {one.expires_at:%Y-%m-%d}" if one.expires_at else ""
        rights = " ".join(one.rights) or "no rights"
        print(f"{one.prefix}  {one.organisation}  {one.name}  ({rights}; {used}{ends})")


@api_keys.command("revoke")
def revoke_api_key(
    context: typer.Context,
    prefix: Annotated[str, typer.Argument(help="The first 12 characters of the key, as listed.")],
    data: Data = None,
) -> None:
    """Revoke a key at once. Give its beginning alone: other users see command lines."""
    revoked: list[ListedKey] = []

    async def act(app: "App") -> None:
        found = await app.api_keys.list_all(prefix)
        if len({one.key_id for one in found}) != 1:
            many = f"{len(found)} keys begin" if found else "no key begins"
            raise OperatorError(f"{many} with {prefix!r}: see `holdfast api-key list`")
        await app.api_keys.revoke(found[0].organisation_id, found[0].key_id)
        revoked.append(found[0])

    context.obj(data, act)
    print(f"{revoked[0].name} of {revoked[0].organisation} is revoked")
