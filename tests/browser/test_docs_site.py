"""The documentation site of `make site`: built offline, whole, the same twice, and used in a browser."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.built_site import dead_links, foreign_loads, read_page
from tests.tidy.tree import ROOT, assert_no_violations, written
from tools.browser import DESKTOP, PHONE
from tools.docs_site import differing_files

# Every kind of content that a page can have; a whole site takes three times as long.
SOME = (
    *("ARCHITECTURE.md", "docs/api.md", "docs/layouts.md", "docs/live.md", "docs/problems.md"),
    *("docs/waitlist.md", "docs/flows/payment.md", "docs/operating/settings.md"),
    "docs/decisions/0017-search-uses-its-own-index.md",
)
WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def build(output: Path, *words: str) -> Path:
    """In another process: no other test needs Sphinx. A request to another host would fail."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tools.docs_site", "--output", str(output), *words),
        cwd=ROOT,
        env={**os.environ, "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return output


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Path:
    """Built twice, which fails if a byte differs. With --full all pages, as `.ci/run` does."""
    pages = () if pytestconfig.getoption("--full") else SOME
    return await build(tmp_path_factory.mktemp("docs") / "site", "--twice", *pages)


@pytest.fixture
async def reader(browser: Browser) -> AsyncIterator[Page]:
    """On a phone, offline, in the dark."""
    context = await browser.new_context(**PHONE, color_scheme="dark", offline=True)
    yield await context.new_page()
    await context.close()


def test_a_difference_of_two_builds_is_found(tmp_path: Path) -> None:
    written(tmp_path, {"one/a": "a", "one/b": "b", "other/a": "a", "other/b": "B", "other/c": ""})

    assert differing_files(tmp_path / "one", tmp_path / "other") == ["b", "c"]


def test_every_link_and_anchor_of_the_site_leads_somewhere(site: Path) -> None:
    assert (site / "docs" / "decisions" / "index.html").exists()
    assert_no_violations(dead_links(site))


def test_every_error_code_in_the_reference_links_to_its_description(site: Path) -> None:
    text = "".join(path.read_text() for path in (site / "reference").glob("*.json"))
    codes = set(re.findall(r"\.\./docs/problems\.html#(\w+)", text))

    assert len(codes) > 50
    assert codes <= read_page(site / "docs" / "problems.html").ids


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    assert_no_violations(foreign_loads(site))


def test_a_dead_link_and_a_foreign_script_are_found(tmp_path: Path) -> None:
    page = '<p id="a"><a href="#a"><a href="b.html"><a href="#b"><script src="//example.org/x.js">'
    written(tmp_path, {"a.html": page, "a.css": "@import url(https://example.org/a.css)"})

    assert len(list(dead_links(tmp_path))) == 3
    assert len(list(foreign_loads(tmp_path))) == 2


async def test_a_word_is_found_by_the_search_of_the_site(site: Path, reader: Page) -> None:
    await reader.goto(f"file://{site}/search.html?q=waitlist")

    await expect(reader.locator("ul.search a").first).to_be_visible()
    links = await reader.locator("ul.search a").evaluate_all("all => all.map(one => one.href)")
    assert any("docs/waitlist.html" in link for link in links), links


@pytest.mark.parametrize(
    "page", ["index", "ARCHITECTURE", "docs/api", "docs/flows/payment", "docs/operating/settings"]
)
async def test_no_page_is_wider_than_a_phone(site: Path, reader: Page, page: str) -> None:
    await reader.goto(f"file://{site}/{page}.html")

    assert await reader.evaluate(WIDE) <= 0


async def test_the_reference_shows_every_operation_of_its_document(site: Path, browser: Browser) -> None:
    context = await browser.new_context(**DESKTOP, offline=True)
    page = await context.new_page()
    await page.goto(f"file://{site}/reference/house.html")
    await expect(page.locator("#operations-admin-list_organisations")).to_be_visible()

    count = await page.evaluate("Object.values(openapi.paths).flatMap(Object.keys).length")
    await expect(page.locator(".opblock")).to_have_count(count)
    await context.close()
