"""Chromium without a window, for tests, screenshots and the bench."""

import os
import shutil
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, async_playwright

ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WHOLE = ("chromium", "chromium-browser")  # what people have: for figures and pictures
LEAN = ("chromium-headless-shell", *WHOLE)  # the same engine for half of the processor time: for tests
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}, "locale": "en-US"}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
    "locale": "en-US",
}


def find_chromium(names: Iterable[str] = WHOLE) -> str | None:
    """The path in CHROMIUM, else the first of these on the PATH; None if none is installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@asynccontextmanager
async def chromium(names: Iterable[str] = WHOLE) -> AsyncIterator[Browser]:
    path = find_chromium(names)
    if path is None:
        raise SystemExit("chromium is not installed (Debian: apt install chromium)")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=list(ARGS))
        try:
            yield opened
        finally:
            await opened.close()
