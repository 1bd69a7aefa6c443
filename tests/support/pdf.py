"""Printed tickets, read by independent tools: Debian's poppler and zbar, or else by others."""

import asyncio
import os
import shutil
from pathlib import Path

import pypdfium2  # type: ignore[import-untyped]
import zxingcpp

DOTS_AN_INCH = 150  # of a phone's screen that shows a page of A4, or of a poor printer


def words_on(pdf: bytes) -> str:
    """The text of all pages, each gap one space."""
    pages = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(pdf)]
    return " ".join(" ".join(pages).split())


async def codes_on(pdf: bytes, folder: Path) -> tuple[set[str], str]:
    """(what every QR on every page says, what has read it)"""
    file = folder / "tickets.pdf"
    file.write_bytes(pdf)
    if shutil.which("pdftoppm") and shutil.which("zbarimg"):
        return await _by_debian(file), f"pdftoppm at {DOTS_AN_INCH} dpi and zbarimg"
    assert "CI" not in os.environ, "install poppler-utils and zbar-tools"
    pages = [page.render(scale=DOTS_AN_INCH / 72).to_pil() for page in pypdfium2.PdfDocument(file)]
    found = {one.text for page in pages for one in zxingcpp.read_barcodes(page)}
    return found, f"pypdfium2 at {DOTS_AN_INCH} dpi and zxing-cpp: pdftoppm and zbarimg are not installed"


async def _by_debian(file: Path) -> set[str]:
    await _output_of("pdftoppm", "-r", str(DOTS_AN_INCH), "-png", str(file), str(file.with_suffix("")))
    pages = sorted(str(page) for page in file.parent.glob(f"{file.stem}-*.png"))
    lines = await _output_of("zbarimg", "--quiet", "--raw", *pages)
    return set(lines.split())


async def _output_of(*words: str) -> str:
    pipe = asyncio.subprocess.PIPE
    tool = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe)
    output, complaint = await asyncio.wait_for(tool.communicate(), 60)
    assert tool.returncode == 0, f"{words[0]}: {complaint.decode()}"
    return output.decode()
