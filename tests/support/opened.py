"""Applications as tests open them: those of the product; in a run with `--pods`, of a house with pods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import holdfast.app
from holdfast.app import App
from holdfast.config import Config
from holdfast.pod_choice import find_show
from holdfast.pods import parse_pods
from holdfast.web.asgi import Application
from tests.support.spread_app import SpreadApp
from tests.support.spread_ledgers import SpreadLedgers

_houses: list[SpreadLedgers] = []  # that of the run


def enter_house(house: SpreadLedgers) -> None:
    _houses.append(house)


def current_house() -> SpreadLedgers | None:
    return _houses[-1] if _houses else None


def house_of(config: Config) -> SpreadLedgers | None:
    """None: an installation without pods, or with pods of its own."""
    names = ["", *(place.name for place in parse_pods(config.pods))]
    return next((one for one in _houses if config.pods and names == one.names), None)


def engines_of(config: Config) -> dict[str, str]:
    """Environment of a command for this installation."""
    pods = {"HOLDFAST_PODS": config.pods} if config.pods else {}
    return {"HOLDFAST_DATABASE_URL": config.database_url, "HOLDFAST_REDIS_URL": config.redis_url, **pods}


def where_sold(config: Config) -> Config:
    """The database that sells the newest show, without the others: for what looks at one of them."""
    house = house_of(config)
    places = [one for one in house.places if one.name == house.selling] if house else []
    return replace(places[0].configure(config) if places else config, pods="")


@asynccontextmanager
async def open_app(config: Config) -> AsyncIterator[App]:
    house = house_of(config)
    async with holdfast.app.open_app(config) as app:
        yield app if house is None else cast(App, SpreadApp(app, house))


def asgi_app(config: Config, *given: Any) -> Application:
    house, application = house_of(config), holdfast.app.asgi_app(config, *given)
    return application if house is None else cast(Application, SettledApplication(application, house))


class SettledApplication:
    """Requests follow each other so slowly that the house has settled in between."""

    def __init__(self, application: Application, house: SpreadLedgers) -> None:
        self.__dict__.update(real=application, house=house)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["real"], name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["real"], name, value)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        application, house = self.__dict__["real"], self.__dict__["house"]
        if scope["type"] == "http":
            await house.settle(application._app.router.directory)
        await application(scope, receive, send)
        if find_show(scope.get("path_params", {})) is not None:
            pod = scope["state"]["app"].pod
            house.used.add(pod)
