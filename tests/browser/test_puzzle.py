"""The script that solves the puzzle of a hot show, in a real browser: the server accepts what it finds."""

import time

from playwright.async_api import Page

from holdfast.web.puzzles import check_proof, new_puzzle
from tests.support.box_office import Office
from tests.support.browser_seats import opened

SOLVE = """async ({ puzzle, bits }) => {
  const show = [...document.scripts].find((script) => script.src.endsWith("/show.js"));
  const { solve } = await import(show.src.replace(/show\\.js$/, "proof.js"));
  return solve({ puzzle, bits, retry_after_s: 1 });
}"""


async def test_a_browser_solves_it(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=10))
    now_s, bits = int(time.time()), 12
    puzzle = new_puzzle(b"key", "7 range", now_s)

    proof = await page.evaluate(SOLVE, {"puzzle": puzzle, "bits": bits})

    assert check_proof(b"key", "7 range", proof, now_s=now_s, bits=bits, wait_s=15) == "solved"
