"""How other gateways are spoken: each a folder here with a `routes.py`, on the same till.

A wire is an ASGI callable made from a Shop, served under its own name: what WIRES has under "stripe" answers
everything below /stripe, with that name taken off the path. `wires/routes.py` has what all wires share.
"""

from collections.abc import Callable

from holdfast.sandbox.notice import Letter
from holdfast.sandbox.wires.razorpay.letter import razorpay_letter
from holdfast.sandbox.wires.razorpay.routes import razorpay_wire
from holdfast.sandbox.wires.routes import ASGI, Shop
from holdfast.sandbox.wires.stripe.letter import stripe_letter
from holdfast.sandbox.wires.stripe.routes import stripe_wire

WIRES: dict[str, Callable[[Shop], ASGI]] = {"razorpay": razorpay_wire, "stripe": stripe_wire}
LETTERS: dict[str, Letter] = {"razorpay": razorpay_letter, "stripe": stripe_letter}

__all__ = ["ASGI", "LETTERS", "WIRES", "Shop"]
