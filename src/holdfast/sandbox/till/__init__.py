"""The gateway without any HTTP: what every wire and the payment page stand on."""

from holdfast.sandbox.till.store import Call, Done, Made, Till

__all__ = ["Call", "Done", "Made", "Till"]
