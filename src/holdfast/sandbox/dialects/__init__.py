"""How other gateways are spoken: each a folder here with a `routes.py`, on the same till.

A wire is an ASGI callable made from a Shop, served under its own name: what WIRES has under "stripe" answers
everything below /stripe, with that name taken off the path. `wires/routes.py` has what all wires share.
"""

from collections.abc import Callable

from holdfast.sandbox.dialects.razorpay import razorpay_wire
from holdfast.sandbox.dialects.razorpay_event import razorpay_letter
from holdfast.sandbox.dialects.stripe import stripe_wire
from holdfast.sandbox.dialects.stripe_event import stripe_letter
from holdfast.sandbox.http import ASGI, Shop
from holdfast.sandbox.webhook import Letter

WIRES: dict[str, Callable[[Shop], ASGI]] = {"razorpay": razorpay_wire, "stripe": stripe_wire}
LETTERS: dict[str, Letter] = {"razorpay": razorpay_letter, "stripe": stripe_letter}

__all__ = ["ASGI", "LETTERS", "WIRES", "Shop"]
