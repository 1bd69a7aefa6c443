"""Where the pods are: the setting `pods`."""

import re
from dataclasses import dataclass, replace

from holdfast.config import Config
from holdfast.engines.errors import OperatorError

HOME = ""  # the name of the home database
NAME = re.compile(r"(?!home\Z)[a-z][a-z0-9_]{0,30}")  # commands call the home database `home`
EXPECTED = "expected name=postgresql://…,redis://… for each pod, separated by spaces"


@dataclass(frozen=True, slots=True)
class PodPlace:
    """The engines of one pod."""

    name: str
    database_url: str
    redis_url: str

    def configure(self, config: Config) -> Config:
        """The settings of the installation, on the engines of this pod."""
        return replace(
            config,
            database_url=self.database_url,
            database_direct_url="",
            redis_url=self.redis_url,
            replica_url="",
            data_dir=f"{config.data_dir}/pods/{self.name}",
        )


def parse_pods(text: str) -> tuple[PodPlace, ...]:
    """`east=postgresql://…,redis://… west=…`; empty: everything is in the home database."""
    places = tuple(_parse_pod(part) for part in text.split())
    if len({place.name for place in places}) < len(places):
        raise OperatorError("HOLDFAST_PODS names a pod twice")
    return places


def _parse_pod(part: str) -> PodPlace:
    name, _, urls = part.partition("=")
    database_url, _, redis_url = urls.rpartition(",")
    if not NAME.fullmatch(name):
        raise OperatorError(
            f"HOLDFAST_PODS: {name!r} is not the name of a pod: a-z, 0-9 and _, other than home; {EXPECTED}"
        )
    if not database_url.startswith(("postgres://", "postgresql://")) or "://" not in redis_url:
        raise OperatorError(f"HOLDFAST_PODS: the engines of {name} are incomplete: {EXPECTED}")
    return PodPlace(name, database_url, redis_url)
