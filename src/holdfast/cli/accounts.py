"""holdfast account add | list | role | ban | unban | reset | remove-second-factor | erase | export

`main.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import print_json
from holdfast.engines.errors import OperatorError
from holdfast.errors import Refusal

if TYPE_CHECKING:
    from holdfast.accounts.admin import ListedAccount
    from holdfast.app import App
    from holdfast.web.caller import Role

accounts = typer.Typer(help="Accounts and their roles.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON, for programs.")]
EmailArgument = Annotated[str, typer.Argument(help="E-mail address of the account.")]
NO_URL = "http://127.0.0.1:8000"  # where `holdfast serve` listens unless it is set up otherwise
LISTED_MAX = 1000
BEFORE_ALL = 2**62


@accounts.command("add")
def add_account(
    context: typer.Context,
    email: EmailArgument,
    role: Annotated[str, typer.Option(help="fan, organiser, gate or admin.")] = "fan",
    name: Annotated[str, typer.Option(help="Name on bookings. [default: the address]")] = "",
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read a password from standard input: no link.")
    ] = False,
    data: Data = None,
) -> None:
    """Create an account, for example the first administrator. Prints a link to choose its password.

    The link works once, for a week. A password is never part of a command line.
    """
    from msgspec import ValidationError, convert

    from holdfast.accounts import EmailTaken
    from holdfast.accounts.admin_api import NewAccountBody

    wanted = _parse_role(role)
    password = _read_password() if password_stdin else None
    try:
        body = convert({"email": email, "name": name or email, "role": wanted}, NewAccountBody)
    except ValidationError as problem:
        raise OperatorError(f"the account cannot be created: {problem}") from None
    lines: list[str] = []

    async def act(app: "App") -> None:
        try:
            _, path = await app.account_admin.add(email=body.email, name=body.name, role=body.role)
        except EmailTaken:
            then = "`holdfast account role` changes its role, `holdfast account reset` prints a link"
            raise OperatorError(f"{body.email} has an account already: {then}") from None
        if password is None:
            lines.append(f"choose a password for {body.email} ({wanted}): {_url(app)}{path}")
        else:
            await app.people.reset(path.rpartition("/")[2], password)
            lines.append(f"{body.email} can sign in as {wanted}")

    context.obj(data, act)
    print(*lines, sep="\n")


@accounts.command("list")
def list_accounts(
    context: typer.Context,
    text: Annotated[str, typer.Argument(help="A part of the name or the address.")] = "",
    role: Annotated[str, typer.Option(help="fan, organiser, gate or admin. [default: all]")] = "",
    guests: Annotated[bool, typer.Option("--guests", help="List guests, too.")] = False,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """List accounts, newest first."""
    wanted = _parse_role(role) if role else ""
    found: list[ListedAccount] = []

    async def act(app: "App") -> None:
        found.extend(
            await app.account_admin.list(
                text=text, role=wanted, before=BEFORE_ALL, guests=guests, limit=LISTED_MAX
            )
        )

    context.obj(data, act)
    if as_json:
        from msgspec import to_builtins

        from holdfast.accounts.admin_api import build_admin_page

        print_json(to_builtins([build_admin_page(one) for one in found]))
        return
    for one in found:
        print(_describe(one))


def _describe(one: "ListedAccount") -> str:
    account = one.account
    marks = [
        "" if account.is_verified else "address not confirmed",
        f"banned {one.banned_at:%Y-%m-%d}" if one.banned_at else "",
        f"erased {one.erased_at:%Y-%m-%d}" if one.erased_at else "",
    ]
    shown = ", ".join(filter(None, marks))
    return f"{account.account_id:>8}  {account.role:<9}  {account.email}  {account.name}" + (
        f"  ({shown})" if shown else ""
    )


@accounts.command("role")
def change_role(
    context: typer.Context,
    email: EmailArgument,
    role: Annotated[str, typer.Argument(help="fan, organiser, gate or admin.")],
    data: Data = None,
) -> None:
    """Give an account another role. Access tokens with the old one are refused within seconds."""
    wanted = _parse_role(role)

    async def act(app: "App", account_id: int) -> None:
        await app.account_admin.set_role(account_id, wanted)

    _on_account(context, data, email, act)
    print(f"{email} is {wanted} now")


@accounts.command("ban")
def ban_account(context: typer.Context, email: EmailArgument, data: Data = None) -> None:
    """Sign an account out everywhere and refuse its sign-ins. Its paid tickets stay valid."""

    async def act(app: "App", account_id: int) -> None:
        await app.account_admin.ban(account_id)

    _on_account(context, data, email, act)
    print(f"{email} is banned; `holdfast account unban {email}` lifts it")


@accounts.command("unban")
def unban_account(context: typer.Context, email: EmailArgument, data: Data = None) -> None:
    """Let a banned account sign in again."""

    async def act(app: "App", account_id: int) -> None:
        await app.account_admin.unban(account_id)

    _on_account(context, data, email, act)
    print(f"{email} can sign in again")


@accounts.command("reset")
def reset_account(context: typer.Context, email: EmailArgument, data: Data = None) -> None:
    """Print a link to choose a new password. The old password and every session end now."""
    lines: list[str] = []

    async def act(app: "App", account_id: int) -> None:
        path = await app.account_admin.reset(account_id)
        lines.append(f"choose a new password for {email}: {_url(app)}{path}")

    _on_account(context, data, email, act)
    print(*lines, sep="\n")


@accounts.command("remove-second-factor")
def remove_second_factor(context: typer.Context, email: EmailArgument, data: Data = None) -> None:
    """Remove authenticator app, passkeys and recovery codes of a person who has lost them.

    Every session ends, the person gets a mail, and the audit log records it. First make sure who is asking.
    """

    async def act(app: "App", account_id: int) -> None:
        await app.second_factors.remove_all(account_id)

    _on_account(context, data, email, act)
    print(f"{email} signs in without a second factor; they can set one up again on their account page")


@accounts.command("erase")
def erase_account(
    context: typer.Context,
    email: EmailArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    data: Data = None,
) -> None:
    """Delete the name, addresses, password and messages of a person. Bookings and the journal stay."""
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Erase {email}? It cannot be undone")):
        raise OperatorError("nothing was erased: confirm on a terminal, or with --yes")

    async def act(app: "App", account_id: int) -> None:
        await app.erasure.erase(account_id)

    _on_account(context, data, email, act)
    print(f"{email} is erased")


@accounts.command("export")
def export_account(context: typer.Context, email: EmailArgument, data: Data = None) -> None:
    """Print everything that is stored about a person, as JSON."""
    from msgspec.json import encode, format

    found: list[object] = []

    async def act(app: "App", account_id: int) -> None:
        found.append(await app.personal_data.load(account_id))

    _on_account(context, data, email, act)
    print(format(encode(found[0]), indent=2).decode())


def _on_account(
    context: typer.Context, data: Path | None, email: str, act: Callable[["App", int], Awaitable[None]]
) -> None:
    """Act on the account with this address."""

    async def act_on(app: "App") -> None:
        account = await app.accounts.find_account(email)
        if account is None:
            raise OperatorError(f"there is no account with the address {email}: see `holdfast account list`")
        try:
            await act(app, account.account_id)
        except Refusal as refusal:  # its documentation says what to do
            sentence = " ".join((refusal.__doc__ or refusal.title).split("\n\n")[0].split())
            raise OperatorError(f"{email}: {sentence}") from None

    context.obj(data, act_on)


def _url(app: "App") -> str:
    return app.config.public_url.rstrip("/") or NO_URL


def _parse_role(text: str) -> "Role":
    from holdfast.web.caller import Role

    try:
        return Role(text)
    except ValueError:
        raise OperatorError(f"unknown role {text!r}: choose from {', '.join(Role)}") from None


def _read_password() -> str:
    from msgspec import ValidationError, convert

    from holdfast.accounts import NewPassword

    try:
        return str(convert(sys.stdin.readline().rstrip("\n"), NewPassword))
    except ValidationError as problem:
        raise OperatorError(f"the password cannot be used: {problem}") from None
