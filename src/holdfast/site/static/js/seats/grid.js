// The seats of one part as a grid for the keyboard and for screen readers: the same power as the map.
// One tab stop; arrows move, Home and End go to a row's ends, Enter and Space choose, a letter finds a row.

import { numberOf } from "./layout.js";
import { FREE, LETTERS } from "./states.js";

export class Grid {
  /** `onSeat(seat)` when a seat is chosen; `describe(seat)` is its name in full. */
  constructor(element, layout, l10n, { onSeat, onPart, describe, stateOf, chosen }) {
    Object.assign(this, { element, layout, l10n, onSeat, onPart, describe, stateOf, chosen });
    this.part = null;
    this.cells = new Map();
    this.rows = [];
    element.addEventListener("keydown", (event) => this.keyed(event));
    element.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-seat]");
      if (cell) this.choose(Number(cell.dataset.seat));
    });
    element.addEventListener("focusin", (event) => {
      const cell = event.target.closest("[data-seat]");
      if (cell) this.rove(cell);
    });
  }

  show(part) {
    if (part === this.part) return;
    this.part = part;
    this.cells.clear();
    this.rows = [];
    this.element.replaceChildren(part.isArea ? this.areaOf(part) : this.gridOf(part));
    this.tab = this.element.querySelector('[data-seat]:not([aria-disabled="true"])')
      ?? this.element.querySelector("[data-seat]");
    if (this.tab) this.tab.tabIndex = 0;
  }

  areaOf(part) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = this.l10n.t("in_part", { part: part.name, left: this.left(part) });
    button.addEventListener("click", () => this.onPart(part));
    return button;
  }

  left(part) {
    return part.free ? this.l10n.t("left", { count: part.free }) : this.l10n.t("none");
  }

  gridOf(part) {
    const grid = role("div", "grid", "grid");
    grid.setAttribute("aria-label", this.l10n.t("rows_of", { part: part.name }));
    grid.setAttribute("aria-describedby", "rows-hint");
    grid.setAttribute("aria-multiselectable", "true");
    for (const [name, runs] of Map.groupBy?.(part.runs, (run) => run.row) ?? grouped(part.runs)) {
      grid.append(this.rowOf(name, runs));
    }
    return grid;
  }

  rowOf(name, runs) {
    const row = role("div", "row", "row"), header = role("div", "rowheader", "row-name"), seats = [];
    header.textContent = name;
    header.setAttribute("aria-label", this.l10n.t("row", { row: name }));
    row.append(header);
    for (const run of runs) {
      for (let seat = run.start; seat < run.start + run.count; seat++) {
        const cell = role("div", "gridcell", "cell");
        if (seats.length && seat === run.start) cell.classList.add("after-aisle");
        cell.dataset.seat = seat;
        cell.tabIndex = -1;
        cell.textContent = numberOf(this.layout, seat);
        cell.style.setProperty("--seat", this.layout.categories[this.layout.category[seat]].colour);
        this.cells.set(seat, cell);
        this.label(seat, cell);
        row.append(cell);
        seats.push(seat);
      }
    }
    this.rows.push({ name, seats });
    return row;
  }

  label(seat, cell) {
    const isMine = this.chosen().has(seat), state = this.stateOf(seat);
    cell.setAttribute("aria-label", this.describe(seat));
    cell.setAttribute("aria-selected", String(isMine));
    cell.setAttribute("aria-disabled", String(!isMine && state !== FREE));
    cell.dataset.state = isMine ? "mine" : LETTERS[state];
  }

  paint(seats) {
    for (const seat of seats) {
      const cell = this.cells.get(seat);
      if (cell) this.label(seat, cell);
    }
    if (this.part?.isArea) this.element.firstChild.textContent =
      this.l10n.t("in_part", { part: this.part.name, left: this.left(this.part) });
  }

  choose(seat) {
    this.onSeat(seat);
  }

  rove(cell) {
    if (this.tab) this.tab.tabIndex = -1;
    this.tab = cell;
    cell.tabIndex = 0;
  }

  focus() {
    this.tab?.focus() ?? this.element.querySelector("button")?.focus();
  }

  keyed(event) {
    const cell = event.target.closest("[data-seat]");
    if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
    const seat = Number(cell.dataset.seat);
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(seat);
      return;
    }
    const to = this.target(event.key, seat);
    if (to === undefined) return;
    event.preventDefault();
    this.cells.get(to)?.focus();
  }

  /** The seat that a key leads to; undefined: the grid does not handle it. */
  target(key, seat) {
    const at = this.rows.findIndex((row) => row.seats.includes(seat)), row = this.rows[at];
    const place = row.seats.indexOf(seat);
    switch (key) {
      case "ArrowRight": return row.seats[place + 1] ?? seat;
      case "ArrowLeft": return row.seats[place - 1] ?? seat;
      case "ArrowDown": return this.beside(seat, this.rows[at + 1]);
      case "ArrowUp": return this.beside(seat, this.rows[at - 1]);
      case "Home": return row.seats[0];
      case "End": return row.seats.at(-1);
      case "PageUp": return this.beside(seat, this.rows[Math.max(0, at - 5)]);
      case "PageDown": return this.beside(seat, this.rows[Math.min(this.rows.length - 1, at + 5)]);
    }
    if (key.length !== 1) return undefined;
    const begins = (each) => each.name.toLowerCase().startsWith(key.toLowerCase());
    const found = this.rows.slice(at + 1).find(begins) ?? this.rows.find(begins);
    return found && this.beside(seat, found);
  }

  /** The seat of another row that is nearest in the hall: rows need not begin below each other. */
  beside(seat, row) {
    if (!row) return seat;
    const { x, y } = this.layout;
    const apart = (other) => Math.hypot(x[other] - x[seat], y[other] - y[seat]);
    return row.seats.reduce((best, other) => (apart(other) < apart(best) ? other : best));
  }
}

function role(tag, name, className) {
  const element = document.createElement(tag);
  element.setAttribute("role", name);
  element.className = className;
  return element;
}

function grouped(runs) {
  const found = new Map();
  for (const run of runs) found.set(run.row, [...(found.get(run.row) ?? []), run]);
  return found;
}
