"""holdfast account add | role

`main.py` gives these commands their box office: the context's `obj` opens one and lets a function act on it.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.engines.errors import OperatorError

if TYPE_CHECKING:
    from holdfast.app import App
    from holdfast.web.caller import Role

accounts = typer.Typer(help="Accounts and their roles.", no_args_is_help=True)

Data = Annotated[Path | None, typer.Option(help="Folder of the embedded engines. [default: .holdfast]")]
EmailArgument = Annotated[str, typer.Argument(help="E-mail address of the account.")]


@accounts.command("add")
def add_account(
    context: typer.Context,
    email: EmailArgument,
    role: Annotated[str, typer.Option(help="fan, organiser, gate or admin.")] = "fan",
    name: Annotated[str, typer.Option(help="Name on bookings. [default: the address]")] = "",
    data: Data = None,
) -> None:
    """Create an account, for example the first administrator.

    The password is prompted for on a terminal, and read from standard input otherwise.
    """
    from msgspec import ValidationError, convert

    from holdfast.accounts import EmailTaken, NewAccount
    from holdfast.accounts.api import SignUpBody

    wanted, password = _parse_role(role), _read_password()
    try:
        body = convert({"email": email, "password": password, "name": name or email}, SignUpBody)
    except ValidationError as problem:
        raise OperatorError(f"the account cannot be created: {problem}") from None

    async def act(app: "App") -> None:
        if await app.accounts.find_account(body.email) is not None:
            raise EmailTaken(email=body.email)
        hashed = await app.accounts.hashed(body.password)
        await app.accounts.add_many([NewAccount(body.email, body.name, wanted, hashed)])

    context.obj(data, act)
    print(f"{body.email} can sign in as {wanted}")


@accounts.command("role")
def change_role(
    context: typer.Context,
    email: EmailArgument,
    role: Annotated[str, typer.Argument(help="fan, organiser, gate or admin.")],
    data: Data = None,
) -> None:
    """Give an account another role. Access tokens with the old one are refused within seconds."""
    wanted = _parse_role(role)

    async def act(app: "App") -> None:
        account = await app.accounts.find_account(email)
        if account is None:
            raise OperatorError(f"there is no account with the address {email}")
        await app.accounts.set_role(account.account_id, wanted)

    context.obj(data, act)
    print(f"{email} is {wanted} now")


def _parse_role(text: str) -> "Role":
    from holdfast.web.caller import Role

    try:
        return Role(text)
    except ValueError:
        raise OperatorError(f"unknown role {text!r}: choose from {', '.join(Role)}") from None


def _read_password() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")
