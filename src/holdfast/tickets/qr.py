"""A code as a picture: SVG for pages, PNG for mail, modules for print. No I/O.

Error correction M: a scratched phone or a folded sheet is still read, and the picture stays at 37 or 41
modules. The quiet zone of four modules is part of every picture, so that no caller can omit it.
"""

import io
from base64 import b64encode
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # imported with the first code: 3 MB
    from segno import QRCode

QUIET = 4
ERROR_CORRECTION = "m"
QR_CACHE_MAX = 32


def matrix(code: str) -> list[list[bool]]:
    """Rows of modules, dark or not, without the quiet zone."""
    return [[bool(module) for module in row] for row in _drawn(code).matrix]


def svg(code: str) -> str:
    """A picture that is as large as its place; always dark on white, whatever the page's colours are."""
    out = io.BytesIO()
    _drawn(code).save(
        out, kind="svg", border=QUIET, xmldecl=False, svgns=True, omitsize=True, light="#fff", nl=False
    )
    return out.getvalue().decode()


def svg_url(code: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(svg(code).encode()).decode()


def png(code: str, scale: int = 8) -> bytes:
    out = io.BytesIO()
    _drawn(code).save(out, kind="png", border=QUIET, scale=scale)
    return out.getvalue()


@lru_cache(maxsize=QR_CACHE_MAX)
def _drawn(code: str) -> "QRCode":
    """Cached, because a mail shows the same code as a picture and in its PDF."""
    import segno

    return segno.make_qr(code, error=ERROR_CORRECTION, boost_error=False)
