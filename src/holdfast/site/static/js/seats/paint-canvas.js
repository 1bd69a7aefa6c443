// A big hall on one canvas: parts with their prices from far, dots nearer, seats with numbers when close.
//
//   a gesture      moves the canvas by a CSS transform: nothing is painted
//   it settles     everything in sight is repainted sharply; dots come from one bitmap per section
//   a change       repaints the cells of those seats, in the bitmap and on the canvas

import { middle } from "./layout.js";
import { mixed, textOn } from "./look.js";
import { Seats, fitName, roomOf } from "./seat-signs.js";

const ROOM = 0.25; // of the width, painted beyond each edge: so far a finger sees no blank
const DOTS_PX = 3.4; // between seats: from here on they are drawn one by one
const SINGLY_PX = 9; // from here on they are painted straight away: few are in sight
const ROWS_PX = 11; // from here on rows have their letters
const NUMBERS_PX = 19;
const DENSITY_MAX = 2;
const BITMAPS_PIXELS_MAX = 12e6;
const FRAME_MS = 10; // for building bitmaps per frame, so that gestures stay smooth
const PARTS_MS = 250; // from far, a change only moves a number: soon enough
const DIMMED = 0.55; // how much of a section beside the one in the middle is covered

export class CanvasPainter extends Seats {
  constructor(element, layout, states, look, l10n) {
    super(layout, states, look);
    this.l10n = l10n;
    this.frame = element;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "hall";
    this.canvas.setAttribute("aria-hidden", "true");
    this.ink = this.canvas.getContext("2d", { alpha: false });
    this.chosenPart = null;
    this.focus = null; // the part that is looked at, when seats are close: its neighbours are dimmed
    this.bitmaps = new Map();
    this.bitmapPixels = 0;
    element.prepend(this.canvas);
  }

  /** Whether the hall from far, without its seats, is all that is seen of it. */
  static isFar(pitchPx) {
    return CanvasPainter.level(pitchPx) === "parts";
  }

  static level(pitchPx) {
    return pitchPx < DOTS_PX ? "parts" : pitchPx < NUMBERS_PX ? "dots" : "numbers";
  }

  move(view) {
    const drawn = this.drawn;
    if (!drawn) return;
    const factor = view.scale / drawn.scale;
    const dx = (drawn.x - view.x) * view.scale, dy = (drawn.y - view.y) * view.scale;
    this.canvas.style.transform = `translate(${dx}px, ${dy}px) scale(${factor})`;
    // A long pull leaves what is painted: paint once more on the way.
    const { width, height } = this.size ?? { width: 1, height: 1 };
    if (factor === 1 && (Math.abs(dx) > width * ROOM || Math.abs(dy) > height * ROOM)) this.settle(view);
  }

  settle(view) {
    const { width, height } = this.frame.getBoundingClientRect();
    const density = Math.min(DENSITY_MAX, devicePixelRatio || 1);
    const wide = Math.round(width * (1 + 2 * ROOM)), high = Math.round(height * (1 + 2 * ROOM));
    if (!this.size || this.size.wide !== wide || this.size.high !== high || this.size.density !== density) {
      this.size = { width, height, wide, high, density };
      this.canvas.width = wide * density;
      this.canvas.height = high * density;
      Object.assign(this.canvas.style, {
        width: `${wide}px`, height: `${high}px`,
        left: `${(width - wide) / 2}px`, top: `${(height - high) / 2}px`,
      });
    }
    this.drawn = { ...view };
    this.canvas.style.transform = "";
    this.redraw();
  }

  /** Everything that is in sight. */
  redraw() {
    if (!this.drawn) return;
    const { ink, drawn, look, layout } = this;
    this.level = CanvasPainter.level(drawn.scale * layout.pitch);
    this.drawnBy = performance.now() + FRAME_MS;
    this.isUnfinished = false;
    ink.setTransform(1, 0, 0, 1, 0, 0);
    ink.fillStyle = look.card;
    ink.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.toWorld();
    const seen = layout.parts.filter((part) => this.isSeen(part.box)), isFar = this.level === "parts";
    // A shape among rows stands on the floor of their section, and behind the seats.
    if (!isFar) for (const part of seen) if (!part.isArea) this.drawFloor(part);
    for (const shape of layout.shapes) this.drawShape(shape);
    for (const part of seen) if (part.isArea || isFar) this.drawPart(part);
    this.seen = new Set(seen);
    const isFine = drawn.scale * layout.pitch >= SINGLY_PX;
    if (this.level === "dots") for (const part of seen) this[isFine ? "drawSingly" : "drawDots"](part);
    if (this.level === "numbers") for (const part of seen) this.drawNumbers(part);
    if (this.focus) for (const part of seen) if (this.isDimmed(part)) this.dim(part);
    this.drawChosen();
    cancelAnimationFrame(this.finishing);
    if (this.isUnfinished) this.finishing = requestAnimationFrame(() => this.redraw());
  }

  /** Paint in metres from here on. */
  toWorld() {
    const { ink, size, drawn } = this, scale = drawn.scale * size.density;
    ink.setTransform(
      scale, 0, 0, scale,
      (size.wide / 2) * size.density - drawn.x * scale, (size.high / 2) * size.density - drawn.y * scale,
    );
  }

  isSeen([left, top, right, bottom]) {
    const { drawn, size } = this;
    const halfX = size.wide / drawn.scale / 2, halfY = size.high / drawn.scale / 2;
    const isAcross = right > drawn.x - halfX && left < drawn.x + halfX;
    return isAcross && bottom > drawn.y - halfY && top < drawn.y + halfY;
  }

  trace(outline) {
    this.ink.beginPath();
    for (const [x, y] of outline) this.ink.lineTo(x, y);
    this.ink.closePath();
  }

  drawShape({ outline, text }) {
    const { ink, look } = this, [x, y] = middle(outline);
    this.trace(outline);
    ink.fillStyle = look.sunk;
    ink.fill();
    ink.strokeStyle = look.line;
    ink.lineWidth = 1.5 / this.drawn.scale;
    ink.stroke();
    const px = Math.min(30, Math.max(11, this.drawn.scale * 2.4));
    this.write(this.l10n.shapeName(text), x, y, { px, colour: look.soft, weight: 700 });
  }

  isDimmed(part) {
    return this.focus !== null && part !== this.focus && !part.isArea;
  }

  /** Not where one looks: paler, with its name where it is seen. */
  dim(part) {
    const { ink, look, drawn, size } = this;
    this.trace(part.outline);
    ink.globalAlpha = DIMMED;
    ink.fillStyle = ink.strokeStyle = look.card;
    ink.lineWidth = part.pitch * 1.5;
    ink.stroke();
    ink.fill();
    ink.globalAlpha = 1;
    const half = [size.width / drawn.scale / 2, size.height / drawn.scale / 2];
    const [left, top, right, bottom] = part.box;
    const seen = [Math.max(left, drawn.x - half[0]), Math.max(top, drawn.y - half[1]),
      Math.min(right, drawn.x + half[0]), Math.min(bottom, drawn.y + half[1])];
    const wide = (seen[2] - seen[0]) * drawn.scale, high = (seen[3] - seen[1]) * drawn.scale;
    if (wide < part.name.length * 12 || high < 24) return;
    this.write(part.name, (seen[0] + seen[2]) / 2, (seen[1] + seen[3]) / 2, { px: 20, colour: look.ink, weight: 800 });
  }

  /** From far: how much is left, from what price. The fuller the colour, the more there is. */
  drawPart(part) {
    const { ink, look, drawn, l10n } = this;
    const alpha = 0.3 + 0.7 * Math.sqrt(part.free / part.total);
    const fill = look.isForced ? look.card : part.free ? mixed(look.colours[part.category], look.card, alpha) : look.sunk;
    this.trace(part.outline);
    ink.fillStyle = fill;
    ink.fill();
    ink.lineWidth = (part === this.chosenPart ? 4 : 1.25) / drawn.scale;
    ink.strokeStyle = part === this.chosenPart ? look.ink : part.free && !look.isForced ? look.card : look.line;
    ink.stroke();
    const room = roomOf(part, drawn.scale), fit = fitName(l10n.partName(part), room), [x, y] = middle(part.outline);
    if (!fit) return;
    const colour = look.isForced ? look.ink : !part.free ? look.soft : textOn(fill);
    this.write(fit.text, x, y, { ...fit, colour, weight: 800, down: room.isRoomy ? -14 : 0 });
    if (!room.isRoomy) return;
    const from = part.free ? l10n.t("from", { price: l10n.price(part.fromMinor) }) : l10n.t("none");
    this.write(from, x, y, { px: 11, colour, down: 2 });
    if (part.free) this.write(l10n.t("left", { count: part.free }), x, y, { px: 11, colour, down: 16 });
  }

  drawFloor(part) {
    const { ink, look } = this;
    this.trace(part.outline);
    ink.strokeStyle = look.line;
    ink.lineWidth = part.pitch * 1.5;
    ink.lineJoin = "round";
    ink.stroke();
    ink.fillStyle = look.paper;
    ink.lineWidth = part.pitch * 1.4;
    ink.strokeStyle = look.paper;
    ink.stroke();
    ink.fill();
  }

  /**
   * The dots of a part, from its bitmap: one for every step of the scale. When many are to be made at once,
   * those that this frame has no time for come from another step's, or as a patch of colour, for a frame.
   */
  drawDots(part) {
    if (part.isArea) return;
    const step = Math.ceil(Math.log2(this.drawn.scale * this.size.density) * 2) / 2;
    const isLate = performance.now() > this.drawnBy;
    const cached = this.cachedBitmap(part, step) ?? (isLate ? this.anyOf(part) : this.bitmapOf(part, step));
    this.isUnfinished ||= cached?.step !== step;
    if (!cached) return void this.drawPatch(part);
    const { bitmap, left, top, scale } = cached;
    this.ink.imageSmoothingEnabled = true;
    this.ink.drawImage(bitmap, left, top, bitmap.width / scale, bitmap.height / scale);
  }

  drawPatch(part) {
    this.trace(part.outline);
    this.ink.globalAlpha = 0.35;
    this.ink.fillStyle = this.look.colours[part.category];
    this.ink.fill();
    this.ink.globalAlpha = 1;
  }

  cachedBitmap(part, step) {
    const key = `${part.index} ${step}`, cached = this.bitmaps.get(key);
    if (!cached) return undefined;
    this.bitmaps.delete(key); // the one used last is the last to be thrown away
    this.bitmaps.set(key, cached);
    return cached;
  }

  anyOf(part) {
    return [...this.bitmaps.values()].findLast((cached) => cached.part === part);
  }

  bitmapOf(part, step) {
    const scale = 2 ** step;
    const [left, top, right, bottom] = part.box;
    const bitmap = document.createElement("canvas");
    bitmap.width = Math.max(1, Math.ceil((right - left) * scale));
    bitmap.height = Math.max(1, Math.ceil((bottom - top) * scale));
    const cached = { part, step, bitmap, left, top, scale, ink: bitmap.getContext("2d") };
    cached.ink.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
    for (const run of part.runs) {
      for (let seat = run.start; seat < run.start + run.count; seat++) this.drawDot(cached.ink, seat, scale);
    }
    this.store(`${part.index} ${step}`, cached);
    return cached;
  }

  store(key, cached) {
    this.bitmaps.set(key, cached);
    this.bitmapPixels += cached.bitmap.width * cached.bitmap.height;
    for (const [old, { bitmap, part, step }] of this.bitmaps) {
      if (this.bitmapPixels <= BITMAPS_PIXELS_MAX) break;
      if (step === cached.step && this.seen.has(part)) continue; // it is about to be drawn
      this.bitmapPixels -= bitmap.width * bitmap.height;
      this.bitmaps.delete(old);
    }
  }

  forgetBitmaps() {
    this.bitmaps.clear();
    this.bitmapPixels = 0;
  }

  /** Near enough that few are in sight, and a bitmap of the whole part would be too big. */
  drawSingly(part) {
    const scale = this.drawn.scale * this.size.density, hasNames = this.drawn.scale * part.pitch >= ROWS_PX;
    for (const run of this.runsSeen(part)) {
      if (hasNames) this.drawRowName(run);
      for (let seat = run.start; seat < run.start + run.count; seat++) this.drawDot(this.ink, seat, scale);
    }
  }

  drawNumbers(part) {
    for (const run of this.runsSeen(part)) {
      this.drawRowName(run);
      for (let seat = run.start; seat < run.start + run.count; seat++) this.drawSeat(seat);
    }
  }

  runsSeen(part) {
    const { x, y } = this.layout;
    const room = part.pitch * 3;
    return part.runs.filter(({ start, count }) => {
      const last = start + count - 1, half = start + (count >> 1); // a bow reaches further than its ends
      const xs = [x[start], x[half], x[last]], ys = [y[start], y[half], y[last]];
      const [left, top, right, bottom] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
      return this.isSeen([left - room, top - room, right + room, bottom + room]);
    });
  }

  drawRowName(run) {
    const { layout, look } = this, seat = run.start, away = run.part.pitch;
    const x = layout.x[seat] - Math.cos(layout.turn[seat]) * away;
    const y = layout.y[seat] - Math.sin(layout.turn[seat]) * away;
    const px = Math.min(14, this.drawn.scale * away * 0.5);
    this.write(run.row, x, y, { px, colour: look.soft, weight: 700 });
  }

  /** Seats that are held or booked by the one who looks. */
  setOwn(seats) {
    const before = this.own;
    this.own = new Set(seats);
    this.paint([...before, ...seats].filter((seat) => this.layout.runOf[seat] >= 0));
  }

  choose(seats, part = null) {
    this.chosen = new Set(seats);
    this.chosenPart = part;
    this.redraw();
  }

  /** Only what has changed. */
  paint(seats) {
    const { layout } = this, byPart = new Map();
    for (const seat of seats) {
      const part = layout.partOf[seat];
      if (!byPart.has(part)) byPart.set(part, []);
      byPart.get(part).push(seat);
    }
    for (const cached of this.bitmaps.values()) {
      for (const seat of byPart.get(cached.part.index) ?? []) {
        this.clearCell(cached.ink, seat);
        this.drawDot(cached.ink, seat, cached.scale);
      }
    }
    if (!this.drawn) return;
    if (this.level === "parts" || seats.some((seat) => layout.runOf[seat] < 0)) this.redrawSoon();
    if (this.level === "parts") return;
    this.toWorld();
    for (const part of byPart.keys()) {
      const { isArea, box } = layout.parts[part];
      if (!isArea && this.isSeen(box)) this.repaintCells(byPart.get(part));
    }
    if (this.chosen.size) this.drawChosen();
  }

  repaintCells(seats) {
    const { ink, look, drawn, size, layout } = this;
    for (const seat of seats) {
      const half = layout.parts[layout.partOf[seat]].pitch * 0.5;
      ink.fillStyle = look.paper;
      ink.fillRect(layout.x[seat] - half, layout.y[seat] - half, half * 2, half * 2);
      if (this.level === "dots") this.drawDot(ink, seat, drawn.scale * size.density);
      else this.drawSeat(seat);
      if (!this.isDimmed(layout.parts[layout.partOf[seat]])) continue;
      ink.globalAlpha = DIMMED;
      ink.fillStyle = look.card;
      ink.fillRect(layout.x[seat] - half, layout.y[seat] - half, half * 2, half * 2);
      ink.globalAlpha = 1;
    }
  }

  clearCell(ink, seat) {
    const half = this.layout.parts[this.layout.partOf[seat]].pitch * 0.5;
    ink.clearRect(this.layout.x[seat] - half, this.layout.y[seat] - half, half * 2, half * 2);
  }

  redrawSoon() {
    this.redrawing ??= setTimeout(() => {
      this.redrawing = null;
      this.redraw();
    }, PARTS_MS);
  }

  countAreas() {
    this.redrawSoon();
  }
}
