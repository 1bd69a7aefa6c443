"""The seat map and its panel, in a browser."""

from tools.defects.mutant import undo

SITE = "src/holdfast/site"
CSS = f"{SITE}/static/css/seats.css"
JS = f"{SITE}/static/js/seats"
PANEL = "tests/browser/test_seats_panel.py"
LIVE = "tests/browser/test_seats_live.py"
MAP = "tests/browser/test_seats_map.py"

MUTANTS = (
    undo(
        "the reserve button stays busy after a refusal",
        f"{PANEL} -k works_again",
        (
            f"{JS}/selection.js",
            "    } catch {\n      this.isHolding = false;\n",
            "    } catch {\n",
        ),
    ),
    undo(
        "ten seats on a phone push the button out of sight",
        f"{PANEL} -k eight_seats",
        (
            CSS,
            "  .selection h2, .selection .sum, .selection:not(.is-open) .picked { display: none; }\n",
            "",
        ),
    ),
    undo(
        "two loud buttons stand above each other",
        f"{PANEL} -k one_button_is_loud",
        (f"{JS}/show.js", 'other.classList.toggle("quiet", count > 0)', "other.classList.length"),
    ),
    undo(
        "the button of a choice is below the fold",
        f"{PANEL} -k one_button_is_loud",
        (
            CSS,
            "  position: sticky; bottom: 0; z-index: 3; display: flex; flex-direction: column;",
            "  position: static; z-index: 3; display: flex; flex-direction: column;",
        ),
        (
            CSS,
            "max-height: max(18rem, calc(100dvh - var(--side-end, 6rem) - 2 * var(--s4)));",
            "max-height: none;",
        ),
        (
            CSS,
            "  .has-choice .best > .fine, .has-choice .filters:not([open]) { display: none; }\n",
            "",
        ),
        (
            CSS,
            "    grid-column: 2; grid-row: 2; align-self: end; bottom: var(--s4); margin: 0;\n",
            "    grid-column: 2; grid-row: 2; margin: 0;\n",
        ),
    ),
    undo(
        "who loses one of two seats is offered to reserve one",
        f"{PANEL} -k lost_seat_is_replaced",
        (
            f"{JS}/selection.js",
            "    this.seats = isSelected ? best : best ? [] : rest;\n",
            "    this.seats = rest;\n",
        ),
    ),
    undo(
        "own seats on the map look like a stranger's",
        f"{LIVE} -k own_seats",
        (f"{JS}/show.js", "  painter.setOwn([...selection.own.keys()]);\n", ""),
    ),
    undo(
        "a tapped own seat is another buyer's",
        f"{LIVE} -k own_seats",
        (f"{JS}/show.js", "  selection.own = new Map(own);\n", "  selection.own = new Map();\n"),
    ),
    undo(
        "a map without a network does not say so visibly",
        f"{LIVE} -k offline",
        (f"{JS}/show.js", "  chip.hidden = !is;\n", ""),
    ),
    undo(
        "close seats do not say their rows",
        f"{MAP} -k section_and_their_rows",
        (
            f"{JS}/show.js",
            "  if (here) edges.show(view, here.runs, gesture.width, gesture.height);\n  else ",
            "  ",
        ),
    ),
    undo(
        "close seats do not say their section",
        f"{MAP} -k section_and_their_rows",
        (
            f"{JS}/show.js",
            "  chip.hidden = !here || layout.parts.length < 2;\n",
            "  chip.hidden = true;\n",
        ),
    ),
    undo(
        "blocks of a stadium have no names on a phone",
        f"{MAP} -k blocks_of_a_stadium",
        (
            f"{JS}/seat-signs.js",
            "line: 1.25, least: 8, most: 15, isLoose: false };\n",
            "line: 1.25, least: 15, most: 15, isLoose: false };\n",
        ),
    ),
    undo(
        "sections beside the one that is looked at are as strong",
        f"{MAP} -k neighbours",
        (
            f"{JS}/paint-canvas.js",
            "    return this.focus !== null && part !== this.focus && !part.isArea;\n",
            "    return false;\n",
        ),
    ),
    undo(
        "a place to stand has no card",
        f"{MAP} -k places_to_stand_have_a_card",
        (f"{JS}/standing.js", "        added(part);\n", ""),
    ),
    undo(
        "the name of a narrow place to stand leaves it",
        f"{MAP} -k narrow_place",
        (
            f"{JS}/seat-signs.js",
            "      if (fits) return { text, px, isTurned };\n",
            "      return { text, px: most, isTurned: false };\n",
        ),
    ),
    undo(
        "a sold-out page sells",
        f"{LIVE} -k 'sold_out_show or stops_selling'",
        (
            CSS,
            ":is(.side, .selection.is-empty:not(.has-notice)) { display: none; }\n",
            ":is(.side) { color: inherit; }\n",
        ),
    ),
    undo(
        "a live page does not become sold out",
        f"{LIVE} -k stops_selling",
        (f"{JS}/availability.js", "    page.dataset.left = left;\n", ""),
    ),
    undo(
        "a page says sold out while the last seats are only held",
        f"{LIVE} -k only_held",
        (
            f"{SITE}/show_view.py",
            '"held" if states is not None and HELD in states else "none"',
            '"none"',
        ),
    ),
    undo(
        "marks of chosen seats overlap",
        f"{MAP} -k one_mark_from_far",
        (
            f"{JS}/seat-signs.js",
            "    return [{ from: group[0], to: group.at(-1), radius: least }];\n",
            "    return group.map((seat) => ({ from: seat, to: seat, radius: least }));\n",
        ),
    ),
    undo(
        "focus is hidden under the tray",
        f"{MAP} -k focus_is_never",
        (
            f"{JS}/selection-panel.js",
            "style.scrollPaddingBottom = `${element.offsetHeight + 12}px`",
            "style.scrollPaddingBottom",
        ),
    ),
    undo(
        "seat numbers are white on every colour",
        f"{MAP} -k can_be_read",
        (
            f"{JS}/look.js",
            '  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";\n',
            '  return luminance > 0.5 ? "#000000" : "#ffffff";\n',
        ),
    ),
    undo(
        "lists without scripts hide wheelchair spaces from the sighted",
        f"{MAP} -k wheelchair",
        (f"{SITE}/templates/seats/list.html", '<small class="trait">', '<small class="unseen">'),
    ),
    undo(
        "a concert plays before a screen",
        f"{MAP} -k concert_in_a_cinema",
        (f"{JS}/localiser.js", '"screen" && this.isConcert', '"screen" && false'),
    ),
    undo(
        "the map ends below the fold, and the masthead beside the page",
        f"{MAP} -k above_the_fold",
        (
            CSS,
            "  .map { height: clamp(22rem, calc(100dvh - var(--above, 20rem) - var(--s4)), 50rem); }\n",
            "  .map { height: 50rem; }\n",
        ),
    ),
    undo(
        "a phone on its side shows little of the map",
        f"{MAP} -k on_its_side",
        (
            CSS,
            "  .map { height: calc(100dvh - var(--tap) - 2 * var(--s3)); }\n",
            "  .map { height: 10rem; }\n",
        ),
    ),
    undo(
        "the masthead does not align with the seat page",
        f"{MAP} -k above_the_fold",
        (
            f"{SITE}/static/css/base.css",
            "  padding: var(--s2) max(var(--s4), calc((100vw - var(--wide)) / 2 + var(--s4)));\n",
            "  padding: var(--s2) max(var(--s4), calc((100vw - 76rem) / 2));\n",
        ),
    ),
)
