"""Where the fonts are, and which of them has a letter. The only part of tickets/ that reads files.

    Mukta            Latin with every accent, Devanagari; regular and bold
    Noto Sans        Greek, Cyrillic, the rest of Latin
    Noto Sans …      Tamil, Telugu
    the system's     whatever Debian's fonts-noto-core has put into its folder: all other scripts

A letter that none of them has is spelt in ASCII where Unicode says how, and else as a question mark: a ticket
is printed whatever the title is, and its code and reference are always right.
"""

import asyncio
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.errors import Busy
from holdfast.tickets.issued import PrintedTicket, TicketShow, Typeface
from holdfast.tickets.texts import DEFAULT_LOCALE
from holdfast.tickets.texts_files import texts_for

REGULAR = ("fontpkg_mukta", "Mukta-Regular.ttf")
BOLD = ("fontpkg_mukta", "Mukta-Bold.ttf")
FALLBACKS = (
    ("fontpkg_noto_sans", "NotoSans[wdth,wght].ttf"),
    ("fontpkg_noto_sans_tamil", "NotoSansTamil[wdth,wght].ttf"),
    ("fontpkg_noto_sans_telugu", "NotoSansTelugu[wdth,wght].ttf"),
)
SYSTEM_FONT_FOLDER = Path("/usr/share/fonts/truetype/noto")
SYSTEM_FONTS = "NotoSans*-Regular.ttf"
MISSING = "?"
# What most tickets are written with: Latin with its accents, punctuation, currencies.
PLAIN = frozenset(map(chr, (*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x2010, 0x2027), 0x20AC, 0x20B9)))
SHEETS_AT_ONCE_MAX = 1  # a thread takes the time it needs from everybody in this process
SHEETS_WAITING_MAX = 20


class Printer:
    """PDFs, one after the other and beside the requests; when too many wait for theirs, Busy at once."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(SHEETS_AT_ONCE_MAX, thread_name_prefix="printer")
        self._under_way = 0

    async def print(
        self, occasion: TicketShow, tickets: Sequence[PrintedTicket], locale: str = DEFAULT_LOCALE
    ) -> bytes:
        return await self.run(partial(render_tickets, occasion, tickets, locale))

    async def run(self, draw: Callable[[], bytes]) -> bytes:
        """Whatever else is drawn on paper."""
        if self._under_way >= SHEETS_AT_ONCE_MAX + SHEETS_WAITING_MAX:
            raise Busy(retry_after_s=2)
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, draw)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def render_tickets(
    occasion: TicketShow, tickets: Sequence[PrintedTicket], locale: str = DEFAULT_LOCALE
) -> bytes:
    # Here, not above: 20 MB that a process which only sells does not need.
    from holdfast.tickets.pdf import pdf_file, texts_of

    texts = texts_for(locale)
    return pdf_file(occasion, tickets, texts, typeface_for(texts_of(occasion, tickets, texts)))


def typeface_for(texts: Iterable[str], system: Path = SYSTEM_FONT_FOLDER) -> Typeface:
    """The fonts that these texts need, and how to spell what none of them has."""
    wanted = {letter for text in texts for letter in text if letter.isprintable()}
    if wanted <= plain_letters():
        return Typeface(str(plain_cut(REGULAR)), str(plain_cut(BOLD)), joins=False)
    missing = wanted - load_letters(_packaged(*REGULAR))
    fallbacks = []
    for path in _candidates(system):
        if not missing:
            break
        if has := missing & load_letters(path):
            fallbacks.append(path)
            missing = missing - has
    spelling = {ord(letter): _in_ascii(letter) for letter in missing}
    return Typeface(str(_packaged(*REGULAR)), str(_packaged(*BOLD)), tuple(map(str, fallbacks)), spelling)


@lru_cache(maxsize=1)
def plain_letters() -> frozenset[str]:
    return PLAIN & load_letters(_packaged(*REGULAR)) & load_letters(_packaged(*BOLD))


@lru_cache(maxsize=2)
def plain_cut(font: tuple[str, str]) -> Path:
    """The font with plain letters alone, made once per process: a sheet takes a third of the time with it.

    Most of a font is about letters that join; these stand beside each other.
    """
    from fontTools.subset import Options, Subsetter  # type: ignore[import-untyped]
    from fontTools.ttLib import TTFont  # type: ignore[import-untyped]

    cut = TTFont(_packaged(*font), lazy=True)
    chosen = Subsetter(Options(layout_features=[], drop_tables=["GSUB", "GPOS", "GDEF"], hinting=False))
    chosen.populate(unicodes=[ord(letter) for letter in plain_letters()])
    chosen.subset(cut)
    path = Path(_cuts().name) / font[1]
    cut.save(path)
    return path


@lru_cache(maxsize=1)
def _cuts() -> TemporaryDirectory[str]:
    """Removed when the process ends."""
    return TemporaryDirectory(prefix="holdfast-fonts-")


@lru_cache(maxsize=256)
def load_letters(path: Path) -> frozenset[str]:
    from fontTools.ttLib import TTFont

    with TTFont(path, lazy=True) as font:
        return frozenset(chr(point) for point in font.getBestCmap())


def _candidates(system: Path) -> Iterable[Path]:
    yield from (_packaged(*one) for one in FALLBACKS)
    if system.is_dir():
        yield from sorted(system.glob(SYSTEM_FONTS))


def _packaged(package: str, file: str) -> Path:
    found = resources.files(package) / "files" / file
    assert isinstance(found, Path)  # wheels are unpacked: nothing here runs from a zip
    return found


def _in_ascii(letter: str) -> str:
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return plain or MISSING
