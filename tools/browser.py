"""Chromium without a window, for tests, screenshots and the bench."""

import os
import shutil
from collections.abc import AsyncIterator
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
DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 860}}
PHONE: dict[str, Any] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}


def find_chromium() -> str | None:
    """The path in CHROMIUM, else the one on the PATH; None if it is not installed."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = find_chromium()
    if path is None:
        raise SystemExit("chromium is not installed (Debian: apt install chromium)")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=path, args=list(ARGS))
        try:
            yield opened
        finally:
            await opened.close()
