"""Editing the catalogue: organisers change their own objects, admins change all."""

from holdfast.organisers.errors import HallBusy, NameTaken, NotForOrganisers, ShowCancelled

__all__ = ["HallBusy", "NameTaken", "NotForOrganisers", "ShowCancelled"]
