// A small hall as one drawing: an element a seat, styled by css/seats.css. Above 600 seats: paint-canvas.js.

import { COMPANION, RESTRICTED, WHEELCHAIR, middle, numberOf } from "./layout.js";
import { fitName, roomOf } from "./seat-signs.js";
import { LETTERS } from "./states.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const LEFT_PX = 11;
const UNIT = 20; // pixels of the drawing a metre: text smaller than a pixel is not drawn well

function make(name, attributes = {}, text = "") {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

const points = (outline) => outline.map(([x, y]) => `${x * UNIT},${y * UNIT}`).join(" ");

export class SvgPainter {
  constructor(element, layout, states, look, l10n) {
    Object.assign(this, { layout, states, look, l10n });
    this.frame = element;
    this.svg = make("svg", { class: "hall", "aria-hidden": "true", focusable: "false" });
    this.seats = new Array(layout.count);
    this.chosen = new Set();
    this.own = new Set();
    this.drawHall();
    element.prepend(this.svg);
  }

  drawHall() {
    const { layout, svg } = this;
    for (const shape of layout.shapes) this.drawShape(shape);
    this.areas = layout.parts.filter((part) => part.isArea).map((part) => [part, this.drawArea(part)]);
    for (const run of layout.runs) {
      this.drawRowName(run);
      for (let seat = run.start; seat < run.start + run.count; seat++) {
        this.seats[seat] = this.drawSeat(seat, run.part.pitch);
        svg.append(this.seats[seat]);
      }
    }
  }

  drawShape({ outline, text }) {
    const shape = make("polygon", { points: points(outline), class: "hall-shape" });
    const [x, y] = middle(outline);
    this.svg.append(shape, make("text", { x: x * UNIT, y: y * UNIT, class: "hall-shape-name" }, this.l10n.shapeName(text)));
  }

  drawArea(part) {
    const group = make("g", { class: "hall-area", "data-part": part.index });
    const shape = make("polygon", { points: points(part.outline), fill: this.look.colours[part.category] });
    const name = make("text", { class: "name" }), left = make("text");
    group.append(shape, name, left);
    this.svg.append(group);
    return { group, name, left };
  }

  /** The name of an area as big as it fits at this scale; what is left of it where there is room beneath. */
  writeArea(part, { name, left }, scale) {
    const px = UNIT / scale, [x, y] = middle(part.outline).map((metres) => metres * UNIT);
    const room = roomOf(part, scale), fit = fitName(this.l10n.partName(part), room);
    const write = (element, size, down, turn = 0) => {
      element.style.fontSize = `${size * px}px`;
      element.setAttribute("transform", `translate(${x} ${y + down * px}) rotate(${turn})`);
    };
    name.textContent = fit?.text ?? "";
    if (fit) write(name, fit.px, room.isRoomy ? -9 : 0, fit.isTurned ? -90 : 0);
    left.style.display = room.isRoomy ? "" : "none";
    write(left, LEFT_PX, 11);
  }

  drawRowName(run) {
    const { x, y, turn } = this.layout, first = run.start, away = run.part.pitch * 1.05;
    const left = (x[first] - Math.cos(turn[first]) * away) * UNIT;
    const top = (y[first] - Math.sin(turn[first]) * away) * UNIT;
    this.svg.append(make("text", { x: left, y: top, class: "hall-row" }, run.row));
  }

  drawSeat(seat, pitch) {
    const { layout, look } = this, size = Math.min(pitch * 0.86, 0.6) * UNIT, trait = layout.trait[seat];
    const category = layout.category[seat], half = size / 2, sign = half * 0.42;
    const place = `translate(${(layout.x[seat] * UNIT).toFixed(1)} ${(layout.y[seat] * UNIT).toFixed(1)})`;
    const degrees = (layout.turn[seat] / Math.PI) * 180;
    const turned = degrees ? ` rotate(${degrees.toFixed(2)})` : "";
    const group = make("g", {
      class: "seat", transform: place + turned, "data-seat": seat, "data-state": LETTERS[this.states[seat]],
      fill: look.categories[category], stroke: look.categories[category],
    });
    const body = make("rect", { x: -half, y: -half, width: size, height: size, rx: size * 0.28 });
    const text = trait === WHEELCHAIR ? "♿︎" : numberOf(layout, seat);
    const name = make("text", { fill: look.texts[category], "font-size": size * 0.44 }, text);
    const crossed = `M${-sign} ${-sign}L${sign} ${sign}M${sign} ${-sign}L${-sign} ${sign}`;
    const ticked = `M${-half * 0.5} 0l${half * 0.36} ${half * 0.38}l${half * 0.66} ${-half * 0.76}`;
    const cross = make("path", { class: "cross", d: crossed });
    const tick = make("path", { class: "tick", d: ticked });
    group.append(body, name, cross, tick);
    const cut = half * 0.1;
    if (trait === RESTRICTED) {
      group.append(make("path", { class: "hidden-view", d: `M${half} ${cut}V${half}H${cut}z` }));
    }
    if (trait === COMPANION) group.append(make("circle", { class: "beside", r: half * 0.8 }));
    return group;
  }

  /** What is ours from now on: the seats and, of standing areas, the part. */
  choose(seats, part = null) {
    for (const seat of this.chosen) this.seats[seat]?.classList.remove("mine");
    this.chosen = new Set(seats);
    for (const seat of seats) {
      this.seats[seat]?.classList.add("mine");
      if (this.seats[seat]) this.svg.append(this.seats[seat]); // above its neighbours: it is a little bigger
    }
    for (const [area, { group }] of this.areas) group.classList.toggle("mine", area === part);
  }

  /** Seats that are held or booked by the one who looks. */
  setOwn(seats) {
    for (const seat of this.own) this.seats[seat]?.classList.remove("own");
    for (const seat of seats) this.seats[seat]?.classList.add("own");
    this.own = new Set(seats);
  }

  paint(seats) {
    for (const seat of seats) {
      const element = this.seats[seat];
      if (element) element.dataset.state = LETTERS[this.states[seat]];
    }
    this.countAreas();
  }

  countAreas() {
    for (const [part, { group, left }] of this.areas) {
      const count = part.free ?? 0;
      left.textContent = count ? this.l10n.t("left", { count }) : this.l10n.t("none");
      group.classList.toggle("gone", !count);
    }
  }

  move(view) {
    const drawn = this.drawn;
    if (!drawn) return;
    const factor = view.scale / drawn.scale;
    const dx = (drawn.x - view.x) * view.scale, dy = (drawn.y - view.y) * view.scale;
    this.svg.style.transform = `translate(${dx}px, ${dy}px) scale(${factor})`;
  }

  settle(view) {
    const { width, height } = this.frame.getBoundingClientRect();
    const wide = (width / view.scale) * UNIT, high = (height / view.scale) * UNIT;
    const box = [view.x * UNIT - wide / 2, view.y * UNIT - high / 2, wide, high];
    this.svg.setAttribute("viewBox", box.join(" "));
    this.svg.style.transform = "";
    this.svg.classList.toggle("far", view.scale * this.layout.pitch < 14);
    for (const [part, drawing] of this.areas) this.writeArea(part, drawing, view.scale);
    this.drawn = { ...view };
  }

  redraw() {
    for (const [part, { group }] of this.areas) {
      group.firstChild.setAttribute("fill", this.look.colours[part.category]);
    }
    this.countAreas();
  }
}
