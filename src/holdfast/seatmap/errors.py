"""Refusals of live maps. No I/O.

Refusal
├── TooManyViewers      503  this process has as many viewers as it takes
└── TooManyStreams      429  this address has as many streams open as it may
"""

from holdfast.errors import Refusal


class TooManyViewers(Refusal):
    """As many people watch live maps here as we have room for.

    Open the stream again after the seconds in Retry-After. Until then read the map itself, every few seconds:
    `GET /shows/{show}/seats`.
    """

    code, status, title = "too_many_viewers", 503, "Too many viewers"


class TooManyStreams(Refusal):
    """Your address has as many live maps open as one address may.

    Close one that you do not need, or open this one again after the seconds in Retry-After. Until then read
    the map itself, every few seconds: `GET /shows/{show}/seats`.
    """

    code, status, title = "too_many_streams", 429, "Too many live maps from one address"
