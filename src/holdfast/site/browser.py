"""What a browser tells us about itself, and what it is told to keep. No I/O."""

from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

from holdfast.accounts import LANGUAGES, choose_language

SESSION = "holdfast"  # a cookie that a proxy may look for: whoever sends it gets pages of their own
LANGUAGE = "holdfast_language"
CITY = "holdfast_city"
COOKIE_NAMES = frozenset({SESSION, LANGUAGE, CITY})
YEAR_S = 31_536_000
COOKIES_BYTES_MAX = 16_384  # a whole domain may share them
LOCALES_CACHED_MAX = 1024  # of languages: most browsers of a country say the same
ACCEPT_LANGUAGE_BYTES_MAX = 256  # what a stranger sends is not kept at any length

# How a language writes numbers, money and dates; the first is for who names no region of it.
LOCALES = {
    "en": ("en_GB", "en_US", "en_IN", "en_AU", "en_CA", "en_IE"),
    "de": ("de_DE", "de_AT", "de_CH"),
    "hi": ("hi_IN",),
}


def parse_cookies(header: bytes | None) -> dict[str, str]:
    """What of ours is in a Cookie header. Whatever others have put there is passed over, broken or not."""
    if not header or len(header) > COOKIES_BYTES_MAX:
        return {}
    pairs = (part.partition("=") for part in header.decode("latin-1").split(";"))
    return {name: value.strip() for spaced, _, value in pairs if (name := spaced.strip()) in COOKIE_NAMES}


def set_cookie(name: str, value: str, *, is_secure: bool, life_s: int = YEAR_S) -> str:
    """A Set-Cookie that scripts cannot read and other sites cannot send along with a form."""
    parts = [f"{name}={value}", "Path=/", f"Max-Age={life_s}", "HttpOnly", "SameSite=Lax"]
    return "; ".join([*parts, "Secure"] if is_secure else parts)


def clear_cookie(name: str, *, is_secure: bool) -> str:
    return set_cookie(name, "", is_secure=is_secure, life_s=0)


@lru_cache(LOCALES_CACHED_MAX)
def choose_locale(language: str | None, accept_language: str | None) -> str:
    """The locale of a page: of the language chosen on a page of ours, else of what the browser asks for."""
    wished = language if language in LANGUAGES else choose_language(accept_language)
    regions = LOCALES[wished]
    for wish in (accept_language or "").split(",")[:10]:
        name = wish.partition(";")[0].strip().replace("-", "_")
        if name in regions:
            return name
    return regions[0]


def is_same_origin(headers: Mapping[bytes, bytes], host: str) -> bool:
    """Whether a page of ours sent this form, and not somebody else's page in the same browser.

    Every browser of the last years says so itself (Sec-Fetch-Site); an older one says at least the origin.
    Whoever says neither is no browser, and has no cookies that somebody could abuse.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")
    origin = headers.get(b"origin")
    return origin is None or urlsplit(origin.decode("latin-1")).netloc == host


def safe_path(path: str, otherwise: str = "/") -> str:
    """A place of ours to go back to; what points anywhere else is not followed."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if fine and "\\" not in path and len(path) <= 1000 else otherwise
