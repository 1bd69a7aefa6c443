"""The sandbox gateway that `holdfast demo` and `holdfast serve` start beside the web workers.

It accepts payments without money, so it listens on this machine only, wherever the web workers do.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from holdfast.config import Config
from holdfast.engines.embedded.folder import DataFolder
from holdfast.engines.embedded.supervise import Recipe
from holdfast.engines.errors import OperatorError
from holdfast.runtime.children import build_command, build_environment, says_ready
from holdfast.runtime.ports import reserve_port, url_for
from holdfast.sandbox import is_in_use, load_or_create_secret

SANDBOX_HOST = "127.0.0.1"
SANDBOX_URL = "sandbox.url"  # in the folder of what runs


def refuse_without_gateway(config: Config) -> None:
    """A forgotten setting must not sell tickets for test cards."""
    if not config.gateway:
        raise OperatorError(
            "no payment gateway is chosen: set HOLDFAST_GATEWAY to stripe, razorpay, none or sandbox "
            "(sandbox moves no money; it is the default with an embedded database only)"
        )


@contextmanager
def sandbox_beside(config: Config, folder: DataFolder, *, may_start: bool) -> Iterator[tuple[Config, int]]:
    """The config with a payment gateway: the operator's, one that runs in this folder, or a new one.

    The number is the port of a new one, else 0. It is reserved here, so that every process knows the address
    before the sandbox is up.
    """
    if config.gateway != "sandbox" or config.gateway_url:
        yield config, 0
        return
    config = with_gateway(config)
    if is_in_use(folder.path / "sandbox") or not may_start:
        yield config, 0
        return
    with reserve_port(SANDBOX_HOST, 0, folder.run) as port:
        url = url_for(SANDBOX_HOST, port)
        folder.write(SANDBOX_URL, url)
        try:
            yield replace(config, gateway_url=url), port
        finally:
            (folder.run / SANDBOX_URL).unlink(missing_ok=True)


def with_gateway(config: Config) -> Config:
    """The config with the address and the secret of the sandbox in its folder, if it has no gateway.

    A command that no gateway was chosen for gets a sandbox without an address: every call to it fails.
    """
    if config.gateway not in ("sandbox", ""):
        return config
    if config.gateway_url:
        return replace(config, gateway="sandbox")
    folder = DataFolder(config.data_dir)
    address = folder.run / SANDBOX_URL
    return replace(
        config,
        gateway="sandbox",
        gateway_url=address.read_text() if address.exists() else "",
        gateway_secret=config.gateway_secret or load_or_create_secret(folder.path / "sandbox"),
    )


def sandbox_recipe(config: Config, folder: DataFolder, *, port: int, web_url: str) -> Recipe:
    ready = folder.run / "sandbox.ready"
    place = ("--host", SANDBOX_HOST, "--port", str(port), "--data", str(folder.path / "sandbox"))
    notify = ("--notify", f"{web_url}/webhooks/sandbox")
    return Recipe(
        name="sandbox",
        command=build_command("sandbox-worker", *place, *notify, "--ready", str(ready)),
        env=build_environment(config),
        ready=says_ready(ready),
        stop_within_s=10.0,
        is_single=True,  # its books have one owner
        speaks=False,  # it stands in for another company's server, so its output is not logged
    )
