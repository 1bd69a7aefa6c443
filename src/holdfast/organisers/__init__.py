"""Organisers."""

from holdfast.organisers.errors import HallBusy, NameTaken, NotForOrganisers, ShowCancelled

__all__ = ["HallBusy", "NameTaken", "NotForOrganisers", "ShowCancelled"]
