"""How the map of a hall looks: sections and rows of close seats, colours, marks, its place on the page."""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from playwright.async_api import Page, expect

from holdfast.demo.halls import club, concert_hall, stadium, village_cinema
from holdfast.layouts import Layout
from holdfast.layouts.body import COLOURS, decode_body
from tests.browser.conftest import Newcomer
from tests.support.box_office import Office
from tests.support.browser_seats import box_of, expect_announcement, opened, picked, scripts_of, still, tap

LAPTOP = {"width": 1440, "height": 900}
LANDSCAPE: dict[str, Any] = {"viewport": {"width": 844, "height": 390}}
CONTRAST_MIN = 4.5
LETTERS_ARE_AT_THE_EDGE = """() => {
  const map = document.getElementById("map").getBoundingClientRect();
  const isAtTheEdge = ({ x, y }) => Math.min(x - map.x, y - map.y, map.bottom - y) < 40;
  const letters = [...document.querySelectorAll("#edges span")];
  return letters.length > 5 && letters.every((each) => isAtTheEdge(each.getBoundingClientRect()));
}"""
DECODED = """
  const { decode } = await import(base + "layout.js");
  const data = JSON.parse(document.getElementById("show-data").textContent);
  const layout = decode(await (await fetch(data.layout)).json());
"""


async def test_close_seats_say_their_section_and_their_rows(house: Office, newcomer: Newcomer) -> None:
    page = await newcomer(viewport=LAPTOP)
    await opened(page, await house.a_show(layout=Layout.build(concert_hall())))
    chip, letters = page.locator("#here"), page.locator("#edges span")
    await expect(chip).to_be_hidden()
    await page.locator("#part").select_option(label="Stalls: 822 left")
    await page.locator("#map").focus()
    for key in ("+", "+", "ArrowRight"):  # the rows begin to the left of what is seen
        await page.keyboard.press(key)

    await expect(chip).to_be_visible()
    await expect(chip).to_have_text("Stalls: 822 left")
    await expect(letters.filter(has_text="J")).to_be_visible()
    await page.wait_for_function(LETTERS_ARE_AT_THE_EDGE)
    await page.keyboard.press("0")
    await expect(chip).to_be_hidden()
    await expect(letters.first).to_be_hidden()


@pytest.mark.parametrize("is_phone", [True, False])
async def test_blocks_of_a_stadium_have_their_names_within_them(
    house: Office, newcomer: Newcomer, is_phone: bool
) -> None:
    """Blocks not much larger than a letter have their numbers, 101 for N101: on a phone those of corners."""
    page = await newcomer(phone=is_phone)
    await opened(page, await house.a_show(layout=Layout.build(stadium())))

    blocks = await page.evaluate(
        f"""async (base) => {{{DECODED}
          const {{ fitName, roomOf }} = await import(base + "seat-signs.js");
          const {{ isInOutline, middle }} = await import(base + "layout.js");
          const [left, top, right, bottom] = layout.bounds, map = document.getElementById("map");
          const scale = 0.9 * Math.min(map.clientWidth / (right - left), map.clientHeight / (bottom - top));
          const ink = document.createElement("canvas").getContext("2d");
          return layout.parts.map((part) => {{
            const fit = fitName(part.name, roomOf(part, scale)), [x, y] = middle(part.outline);
            ink.font = `800 ${{fit.px}}px ${{getComputedStyle(document.body).fontFamily}}`;
            // A letter's own margins do not count.
            const half = ink.measureText(fit.text).width / scale / 2 / 1.05;
            const ends = fit.isTurned ? [[x, y - half], [x, y + half]] : [[x - half, y], [x + half, y]];
            return [part.name, fit.text, ends.every((end) => isInOutline(part.outline, ...end))];
          }});
        }}""",
        await scripts_of(page),
    )

    assert len(blocks) > 100
    for name, written, is_within in blocks:
        assert written == name or ((is_phone or name[-3] == "1") and written == name[-3:])
        assert is_within, name


async def test_numbers_and_names_can_be_read_on_every_colour(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(seats=10))
    chance = random.Random(5)
    colours = [*COLOURS, *(f"#{chance.randrange(2**24):06x}" for _ in range(200))]

    texts = await page.evaluate(
        "async ([base, colours]) => colours.map((await import(base + 'look.js')).textOn)",
        [await scripts_of(page), colours],
    )

    pairs = zip(colours, texts, strict=True)
    assert min(contrast(colour, text) for colour, text in pairs) >= CONTRAST_MIN


def contrast(one: str, other: str) -> float:
    """Of two colours, by WCAG 2."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize("seats", [[4, 5], [4, 5, 6, 30, 31], [0, 2, 4]])
async def test_marks_of_chosen_seats_never_overlap(house: Office, page: Page, seats: Sequence[int]) -> None:
    await opened(page, await house.a_show(layout=Layout.build(concert_hall())))

    marks = await page.evaluate(
        f"""async ([base, seats]) => {{{DECODED}
          const {{ marksOf }} = await import(base + "seat-signs.js");
          const at = (seat) => [layout.x[seat], layout.y[seat]];
          return [20, 40].map((scale) => marksOf(layout, seats, scale).map(({{ from, to, radius }}) =>
            ({{ ends: [at(from), at(to)], radius }})));
        }}""",
        [await scripts_of(page), seats],
    )

    for at_one_scale in marks:
        for place, mark in enumerate(at_one_scale):
            for other in at_one_scale[:place]:
                apart = min(
                    ((ax - bx) ** 2 + (ay - by) ** 2) ** 0.5
                    for ax, ay in mark["ends"]
                    for bx, by in other["ends"]
                )
                assert apart >= mark["radius"] + other["radius"] - 1e-6, (mark, other)


async def test_seats_side_by_side_have_one_mark_from_far(house: Office, page: Page) -> None:
    """A mark is never smaller than what is seen: dots of neighbours would lie upon each other."""
    await opened(page, await house.a_show(layout=Layout.build(concert_hall())))

    far, near = await page.evaluate(
        f"""async (base) => {{{DECODED}
          const {{ marksOf }} = await import(base + "seat-signs.js");
          const at = (scale) => marksOf(layout, [4, 5, 6], scale).map(({{ from, to }}) => [from, to]);
          return [5, 40].map(at);
        }}""",
        await scripts_of(page),
    )

    assert far == [[4, 6]]
    assert near == [[4, 4], [5, 5], [6, 6]]


async def test_a_concert_in_a_cinema_has_a_stage_and_no_screen(house: Office, page: Page) -> None:
    show = await house.a_show(layout=Layout.build(village_cinema()))
    await opened(page, show)
    await expect(page.locator(".hall-shape-name")).to_have_text("Screen")
    concert = await house.a_show(layout=Layout.build(village_cinema()))
    await house.app.postgres.execute(
        "UPDATE event SET kind = 'concert' FROM show WHERE show.event_id = event.id AND show.id = $1", concert
    )

    await opened(page, concert)

    await expect(page.locator(".hall-shape-name")).to_have_text("Stage")


async def test_the_map_ends_above_the_fold_with_a_notice_too(house: Office, newcomer: Newcomer) -> None:
    page = await newcomer(viewport=LAPTOP)
    show = await house.a_show(layout=Layout.build(village_cinema()))
    await opened(page, show)
    bottom = "e => e.getBoundingClientRect().bottom"
    assert await page.locator("#map").evaluate(bottom) <= LAPTOP["height"]
    brand, head = page.locator(".brand"), page.locator(".show-head")
    assert (await box_of(brand))["x"] == (await box_of(head))["x"]

    await tap(page, 50)
    await page.locator("[data-hold]").click()
    await page.wait_for_url("**/bookings/*")
    await opened(page, show)
    await expect(page.locator("#mine")).to_be_visible()

    await page.wait_for_function(
        "() => document.getElementById('map').getBoundingClientRect().bottom <= innerHeight"
    )


async def test_a_phone_on_its_side_shows_enough_of_the_map(house: Office, newcomer: Newcomer) -> None:
    phone = await newcomer(phone=True, **LANDSCAPE)
    await opened(phone, await house.a_show(layout=Layout.build(village_cinema())))
    await phone.locator("#map").evaluate("e => e.scrollIntoView({ block: 'end' })")

    seen = await phone.locator("#map").evaluate(
        """map => {
          const { left, right, top, bottom } = map.getBoundingClientRect(), x = (left + right) / 2;
          const is = (y) => map.contains(document.elementFromPoint(x, y));
          const rows = Array.from({ length: innerHeight }, (_, y) => y);
          return rows.filter((y) => y >= top && y < bottom && is(y)).length;
        }"""
    )

    assert seen >= 260


@pytest.mark.parametrize("size", [(720, 450), (390, 600), (320, 480)], ids=["zoomed", "phone", "small"])
async def test_focus_is_never_hidden_under_the_tray(
    house: Office, newcomer: Newcomer, size: tuple[int, int]
) -> None:
    page = await newcomer(viewport={"width": size[0], "height": size[1]})
    await opened(page, await house.a_show(layout=Layout.build(village_cinema())))
    await page.locator("#rows summary").click()
    cell = page.locator("[role=gridcell][tabindex='0']")
    await cell.focus()
    await page.keyboard.press("Enter")
    await expect(picked(page).first).to_be_attached()
    await page.locator(".brand").focus()

    for _ in range(30):
        await page.keyboard.press("Tab")
        hidden = await page.evaluate(
            """() => {
              const it = document.activeElement, { left, right, top, bottom } = it.getBoundingClientRect();
              const x = (Math.max(0, left) + Math.min(innerWidth, right)) / 2;
              const tray = document.getElementById("selection");
              const isClear = (y) => {
                const at = document.elementFromPoint(x, y);
                return at && (tray.contains(it) || !tray.contains(at));
              };
              const ys = [top + 2, (top + bottom) / 2, bottom - 2].filter((y) => y >= 0 && y < innerHeight);
              return ys.some(isClear) ? null : it.outerHTML.slice(0, 80);
            }"""
        )
        assert hidden is None


async def test_places_to_stand_have_a_card_beside_the_map(house: Office, page: Page) -> None:
    await opened(page, await house.a_show(layout=Layout.build(concert_hall())))
    card = page.locator(".standing")
    await expect(card).to_contain_text("General admission – standing")
    await expect(card).to_contain_text("80 left")

    await page.locator("#part").select_option(label="Gallery (standing): 80 left")
    await expect_announcement(page, "Gallery (standing): 80 left")
    await expect(page.locator("#part option:checked")).to_have_text("Gallery (standing): 80 left")
    await card.get_by_role("button", name="One ticket more").click()
    await expect(card.locator("input[name=quantity]")).to_have_value("3")
    await card.get_by_role("button", name="Add").click()

    await expect(page.locator(".picked .what")).to_have_text("3 tickets, Gallery (standing)")
    await expect(page.locator("[data-hold]")).to_have_text("Reserve 3 tickets")
    await card.get_by_role("button", name="Add").click()  # once more: it stays chosen
    await expect(page.locator(".picked .what")).to_have_count(1)
    await page.locator("[data-hold]").click()
    await page.wait_for_url("**/bookings/*")
    await page.go_back()
    await expect(page.locator("#mine")).to_contain_text("3 tickets, Gallery (standing) reserved for you")


async def test_the_name_of_a_narrow_place_to_stand_stays_within_it(house: Office, page: Page) -> None:
    """A rail of 12 m before the stage, a passage of 1 m beside the rows, a floor with room for all."""
    areas = {
        "Rail": [(-6, 1), (6, 1), (6, 1.9), (-6, 1.9)],
        "West passage": [(-9, 1), (-8, 1), (-8, 14), (-9, 14)],
        "Floor": [(-6, 8), (6, 8), (6, 14), (-6, 14)],
    }
    body = {
        "name": "Narrow",
        "focal": [0, 0],
        "categories": [{"name": "Standard", "colour": "#0072B2"}],
        "sections": [
            {"name": "Rows", "rows": [{"label": "A", "seats": "1-10", "at": [0, 4], "align": "centre"}]}
        ],
        "areas": [{"name": name, "capacity": 50, "outline": outline} for name, outline in areas.items()],
    }
    await opened(page, await house.a_show(layout=Layout.build(decode_body(msgspec.json.encode(body)))))
    drawn = page.locator(".hall-area")
    await expect(drawn).to_have_count(3)

    for place, name in enumerate(areas):
        await expect(drawn.nth(place).locator(".name")).to_have_text(f"{name} (standing)")
        await expect(drawn.nth(place).get_by_text("50 left")).to_be_visible(visible=name == "Floor")
        outside = await still(drawn.nth(place).locator("polygon"))
        for text in await drawn.nth(place).locator("text:visible").all():
            inside = await box_of(text)
            assert outside["x"] <= inside["x"]
            assert outside["y"] <= inside["y"] + inside["height"] / 4
            assert inside["x"] + inside["width"] <= outside["x"] + outside["width"]
            assert inside["y"] + inside["height"] * 3 / 4 <= outside["y"] + outside["height"]


async def test_without_scripts_places_to_stand_are_reserved_from_their_card(
    house: Office, plain: Page
) -> None:
    show = await house.a_show(layout=Layout.build(club()))
    await plain.goto(f"/shows/{show}")
    card = plain.locator(".standing").filter(has_text="Mezzanine")
    await expect(plain.locator("#best")).to_have_count(0)

    await card.locator("input[name=quantity]").fill("4")
    await card.get_by_role("button", name="Reserve").click()

    await plain.wait_for_url("**/bookings/*")
    states = (await house.app.seatmap.newest(show)).states
    assert states.count(b"H"[0], 350) == 4


async def test_without_scripts_wheelchair_spaces_are_seen_in_the_list(house: Office, plain: Page) -> None:
    await plain.goto(f"/shows/{await house.a_show(layout=Layout.build(village_cinema()))}")

    space = plain.locator("#list label").filter(has=plain.locator('input[value="A-1"]'))

    await expect(space.get_by_text("wheelchair space", exact=True)).to_be_visible()
    assert (await box_of(space.get_by_text("wheelchair space", exact=True)))["width"] > 20


PAINTED_AT = f"""async ([base, points, focus = null]) => {{{DECODED}
  const load = (file) => import(base + file);
  const [{{ CanvasPainter }}, {{ Look }}, {{ Localiser }}] = await Promise.all(
    ["paint-canvas.js", "look.js", "localiser.js"].map(load));
  const frame = document.createElement("div");
  frame.style = "position: fixed; width: 400px; height: 400px";
  document.body.append(frame);
  const states = new Uint8Array(layout.count), look = new Look(layout, () => {{}});
  const painter = new CanvasPainter(frame, layout, states, look, new Localiser(data));
  painter.focus = focus === null ? null : layout.parts[focus];
  const at = (x, y) => {{
    painter.settle({{ x, y, scale: 20 }});
    const {{ width, height }} = painter.canvas;
    return [...painter.ink.getImageData(width / 2, height / 2, 1, 1).data].join(" ");
  }};
  return points.map(([x, y]) => at(x, y));
}}"""


async def test_a_shape_among_rows_is_on_the_floor_of_their_section_and_behind_seats(
    house: Office, newcomer: Newcomer
) -> None:
    """A pillar between two rows, and a carpet beneath a seat."""
    rows = [
        {"label": label, "seats": "1-11", "at": [0, y], "align": "centre"}
        for label, y in (("A", 2), ("B", 3.5), ("C", 8))
    ]
    box = [[-1, 4.5], [1, 4.5], [1, 5.5], [-1, 5.5]]
    carpet = [[-3, 3], [3, 3], [3, 4], [-3, 4]]
    body = {
        "name": "Pillars",
        "focal": [0, 0],
        "categories": [{"name": "Standard", "colour": "#0072B2"}],
        "sections": [{"name": "Stalls", "rows": rows, "category": "Standard"}],
    }
    page = await newcomer(viewport=LAPTOP)
    seen = []
    for shapes in ([], [{"outline": box}, {"outline": carpet}]):
        plan = decode_body(msgspec.json.encode(body | {"shapes": shapes}))
        await opened(page, await house.a_show(layout=Layout.build(plan)))
        at = [(0, 5), (0, 3.5), (2.5, 6.5)]  # the pillar, a seat on the carpet, the floor
        seen.append(await page.evaluate(PAINTED_AT, [await scripts_of(page), at]))

    (bare_pillar, bare_seat, bare_floor), (pillar, seat, floor) = seen
    assert bare_pillar == bare_floor == floor
    assert pillar != floor
    assert seat == bare_seat


async def test_neighbours_of_the_section_that_is_looked_at_are_pale(house: Office, page: Page) -> None:
    layout = Layout.build(concert_hall())
    await opened(page, await house.a_show(layout=layout))
    scripts, seats = await scripts_of(page), await page.evaluate(FIRST_SEATS, await scripts_of(page))
    (stalls, balcony), card = seats[:2], await page.evaluate(CARD_COLOUR)

    plain = await page.evaluate(PAINTED_AT, [scripts, [stalls, balcony]])
    looked_at = await page.evaluate(PAINTED_AT, [scripts, [stalls, balcony], 0])

    assert looked_at[0] == plain[0]
    assert looked_at[1] != plain[1]
    assert apart(looked_at[1], card) < apart(plain[1], card) * 0.6


FIRST_SEATS = f"""async (base) => {{{DECODED}
  return layout.parts.filter((part) => !part.isArea).map(({{ runs: [{{ start }}], pitch }}) => [
    layout.x[start] - pitch * 0.25, layout.y[start]]);
}}"""
CARD_COLOUR = """() => {
  const ink = document.createElement("canvas").getContext("2d");
  ink.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--card").trim();
  ink.fillRect(0, 0, 1, 1);
  return [...ink.getImageData(0, 0, 1, 1).data].join(" ");
}"""


def apart(one: str, other: str) -> int:
    return sum(abs(int(a) - int(b)) for a, b in zip(one.split(), other.split(), strict=True))
