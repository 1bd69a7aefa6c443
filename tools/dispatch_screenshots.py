"""Take the screenshot of examples/dispatch in docs/pictures: part of `make screenshots`. Needs Chromium.

The program runs on a free port for half a minute first, so that rides are on their way.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser

from holdfast.engines.embedded.privilege import child_setup
from tools.browser import chromium
from tools.screenshots import DESKTOP, START_WITHIN_S, WAIT_MS, save

WARM_UP_S = 30


async def main() -> None:
    async with start_dispatch() as url, chromium() as browser:
        await asyncio.sleep(WARM_UP_S)
        save("dispatch-desktop", await take(browser, url, DESKTOP))


@asynccontextmanager
async def start_dispatch() -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.dispatch", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
        preexec_fn=child_setup(None, signal.SIGTERM),  # it ends with this process
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), START_WITHIN_S)
        yield json.loads(line)["url"]
    finally:
        process.terminate()
        await process.wait()


async def take(browser: Browser, url: str, device: dict[str, Any]) -> bytes:
    context = await browser.new_context(base_url=url, locale="en-GB", **device)
    context.set_default_timeout(WAIT_MS)
    try:
        page = await context.new_page()
        await page.goto("/")
        await page.wait_for_selector("html[data-live=yes]")
        await page.wait_for_timeout(1500)
        return await page.screenshot(caret="hide")
    finally:
        await context.close()


if __name__ == "__main__":
    asyncio.run(main())
