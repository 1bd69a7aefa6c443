"""holdfast openapi"""

import sys
from typing import Annotated

import typer

from holdfast.web.audiences import Audience

For = Annotated[
    Audience | None, typer.Option("--for", help="Only what is served for fans, organisers or house.")
]


def openapi(audience: For = None) -> None:
    """Print the OpenAPI document of the whole API, for client generators. It needs no engines."""
    import msgspec

    from holdfast.routes import ROUTES
    from holdfast.web.openapi import document, documents

    found = documents(ROUTES)[audience] if audience else document(ROUTES)
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
