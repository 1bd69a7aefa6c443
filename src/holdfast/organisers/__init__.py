"""Editing the catalogue: organisers change their own objects, admins change all."""

from holdfast.organisers.blocks_store import StoredBlock
from holdfast.organisers.errors import HallBusy, NameTaken, NotForOrganisers, ShowCancelled
from holdfast.organisers.forms import BlockRelease, NewBlock, parse_release
from holdfast.organisers.show_forms import ManagedShow, ShowChange

__all__ = [
    "BlockRelease",
    "HallBusy",
    "ManagedShow",
    "NameTaken",
    "NewBlock",
    "NotForOrganisers",
    "ShowCancelled",
    "ShowChange",
    "StoredBlock",
    "parse_release",
]
