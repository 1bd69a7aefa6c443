"""Picks the application of the pod that owns a show.

Every web process has one application per pod, each on the engines of its pod. They share the people of the
home database. A request that names a show, a booking or a ticket gets the application of its pod.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from holdfast.pods.directory import Directory
from holdfast.pods.place import HOME

A = TypeVar("A")


class PodRouter(Generic[A]):
    def __init__(self, directory: Directory) -> None:
        self.directory = directory
        self._by_name: dict[str, A] = {}

    def add(self, name: str, app: A) -> None:
        self._by_name[name] = app

    @property
    def has_pods(self) -> bool:
        return len(self._by_name) > 1

    @property
    def by_name(self) -> Mapping[str, A]:
        """Every application; the one of the home database has the empty name."""
        return self._by_name

    def for_show(self, show_id: int) -> A:
        """That of the home database if the directory names a pod that is not configured here: its ledger
        refuses to sell the show."""
        return self.find(show_id) or self._by_name[HOME]

    def find(self, show_id: int) -> A | None:
        """None: the directory names a pod that is not configured here."""
        return self._by_name.get(self.directory.pod_of(show_id))
