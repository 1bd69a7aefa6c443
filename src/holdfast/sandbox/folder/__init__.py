"""The sandbox's folder: whose it is, and the secret that is kept there when nobody has given one."""

from holdfast.sandbox.folder.store import alone, is_in_use, secret_in

__all__ = ["alone", "is_in_use", "secret_in"]
