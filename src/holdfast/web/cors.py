"""Which other sites' pages may ask us. None, unless the setting says so."""

ALLOWED_HEADERS = b"authorization, content-type, idempotency-key, if-none-match, last-event-id, x-request-id"
EXPOSED_HEADERS = b"etag, idempotency-replayed, location, retry-after, x-request-id"

RawHeaders = list[tuple[bytes, bytes]]


class Cors:
    def __init__(self, origins: str) -> None:
        """`origins`: comma-separated, as browsers send them (`https://tickets.example`), or `*`."""
        self._origins = frozenset(part.strip().encode() for part in origins.split(",") if part.strip())

    @property
    def is_on(self) -> bool:
        return bool(self._origins)

    def headers(self, origin: bytes | None) -> RawHeaders:
        """What every answer to this origin carries. No cookies: tokens travel in a header."""
        if origin is None or not (origin in self._origins or b"*" in self._origins):
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", EXPOSED_HEADERS),
            (b"vary", b"Origin"),
        ]

    def preflight(self, origin: bytes | None, allow: str) -> RawHeaders:
        allowed = self.headers(origin)
        if not allowed:
            return []
        return [
            *allowed,
            (b"access-control-allow-methods", allow.encode()),
            (b"access-control-allow-headers", ALLOWED_HEADERS),
            (b"access-control-max-age", b"600"),
        ]
