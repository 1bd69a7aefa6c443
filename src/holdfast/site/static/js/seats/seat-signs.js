// Draws a single seat on a canvas: free, held, taken or selected, and its accessibility sign.
// Everything is painted in metres; `scale` and `drawn.scale` say how many pixels that are.

import { COMPANION, RESTRICTED, WHEELCHAIR, groups, isInOutline, middle, numberOf } from "./layout.js";
import { Look } from "./look.js";

const MARK_PX = 4.5; // half as wide as a mark of chosen seats at least is: smaller is not seen
// By the height of a line: how wide a letter is, how much stays free at the ends, how high the letters are. Loose: only
// the middle of the line has to be within, so that a corner of a letter may be over the edge of a slanted strip.
const NAME = { letter: 0.62, ends: 0.4, line: 1.25, least: 8, most: 15, isLoose: false };
const NUMBER = { letter: 0.6, ends: 0.1, line: 1, least: 7, most: 11, isLoose: true }; // no figure goes below the line
const SMALL = { ...NUMBER, letter: 0.72, most: 8 };
const ROOMY = { wide: 74, high: 46, area: 5400 };

/**
 * Marks of chosen seats, in metres: {from, to, radius}, `from` and `to` being seats. A dot for each where they are far
 * enough apart on the screen, else one bar over seats side by side: dots would lie upon each other.
 */
export function marksOf(layout, seats, scale) {
  return groups(layout, seats).flatMap((group) => {
    const pitch = layout.parts[layout.partOf[group[0]]].pitch, least = MARK_PX / scale;
    if (pitch * 0.46 >= least) return group.map((seat) => ({ from: seat, to: seat, radius: pitch * 0.46 }));
    return [{ from: group[0], to: group.at(-1), radius: least }];
  });
}

/**
 * How much room a part has for words at this scale, in pixels; roomy: for lines beneath its name. `holds`: whether
 * a box around its middle is within it. A place to stand may be bent around its name: there its size has to do.
 */
export function roomOf(part, scale) {
  const [x, y, metresHigh, metresWide] = middle(part.outline);
  const high = metresHigh * scale, wide = metresWide * scale, area = part.area * scale ** 2;
  const corners = [[-1, -1], [-1, 1], [1, -1], [1, 1]];
  const holds = part.isArea
    ? (across, down) => across <= (part.box[2] - part.box[0]) * scale && down <= high
    : (across, down) => corners.every(([right, under]) =>
      isInOutline(part.outline, x + (right * across) / scale / 2, y + (under * down) / scale / 2));
  return { wide, high, area, holds, isRoomy: wide > ROOMY.wide && high > ROOMY.high && area > ROOMY.area };
}

/**
 * How a name is written into a part that has this room on the screen: {text, px, isTurned}; null: it does not fit.
 * A narrow part among its neighbours has its number alone: "101" for N101.
 */
export function fitName(name, room) {
  const number = /\d{2,}$/.exec(name)?.[0];
  return fitText(name, room, NAME) ?? (number && fitText(number, room, NUMBER)) ?? fitText(name, room, SMALL);
}

function fitText(text, { holds, wide, high }, { letter, ends, line, least, most, isLoose }) {
  for (const isTurned of [false, true]) {
    for (let px = most; px >= least; px--) { // whole sizes: a canvas is slow with many fonts
      const along = px * (text.length * letter + ends), across = px * line, thick = isLoose ? 0 : across;
      const fits = isTurned ? across <= wide && holds(thick, along) : across <= high && holds(along, thick);
      if (fits) return { text, px, isTurned };
    }
  }
  return null;
}

export class Seats {
  constructor(layout, states, look) {
    Object.assign(this, { layout, states, look });
    this.chosen = new Set();
    this.own = new Set(); // held or booked by the one who looks
  }

  /** Words at a place of the hall, as big as they are read, whatever the scale. */
  write(text, x, y, { px, colour, weight = 600, down = 0, isTurned = false }) {
    const { ink, look } = this, px1 = 1 / this.drawn.scale;
    ink.save();
    ink.translate(x, y + down * px1);
    ink.scale(px1, px1);
    if (isTurned) ink.rotate(-Math.PI / 2);
    ink.font = `${weight} ${px}px ${look.body}`;
    ink.textAlign = "center";
    ink.textBaseline = "middle";
    ink.fillStyle = colour;
    ink.fillText(text, 0, 0);
    ink.restore();
  }

  /** A seat without its number, in metres; `scale` is how many pixels that are. */
  drawDot(ink, seat, scale) {
    const { layout, look } = this, x = layout.x[seat], y = layout.y[seat];
    const pitch = layout.parts[layout.partOf[seat]].pitch, half = pitch * 0.41;
    const colour = look.colours[layout.category[seat]];
    const isOwn = this.own.has(seat), kind = isOwn ? "free" : Look.kind(this.states[seat]);
    const px = pitch * scale;
    if (kind === "gone") {
      ink.fillStyle = look.gone;
      if (px < 12) ink.fillRect(x - half * 0.4, y - half * 0.4, half * 0.8, half * 0.8);
      else this.drawCross(ink, x, y, half * 0.55, Math.max(1 / scale, pitch * 0.09));
      return;
    }
    if (px < 9) this.traceSquare(ink, seat, half);
    else this.traceRound(ink, seat, half);
    if (kind === "held") {
      ink.strokeStyle = colour;
      ink.lineWidth = Math.max(0.8 / scale, pitch * 0.1);
      ink.globalAlpha = 0.6;
      ink.stroke();
      ink.globalAlpha = 1;
      return;
    }
    ink.fillStyle = isOwn ? look.good : colour;
    ink.fill();
  }

  traceSquare(ink, seat, half) {
    const { x, y, turn } = this.layout, cos = Math.cos(turn[seat]) * half, sin = Math.sin(turn[seat]) * half;
    ink.beginPath();
    ink.moveTo(x[seat] - cos + sin, y[seat] - sin - cos);
    ink.lineTo(x[seat] + cos + sin, y[seat] + sin - cos);
    ink.lineTo(x[seat] + cos - sin, y[seat] + sin + cos);
    ink.lineTo(x[seat] - cos - sin, y[seat] - sin + cos);
    ink.closePath();
  }

  traceRound(ink, seat, half) {
    const { x, y, turn } = this.layout;
    ink.save();
    ink.translate(x[seat], y[seat]);
    ink.rotate(turn[seat]);
    ink.beginPath();
    ink.roundRect(-half, -half, half * 2, half * 2, half * 0.55);
    ink.restore();
  }

  drawCross(ink, x, y, arm, width) {
    ink.strokeStyle = this.look.gone;
    ink.lineWidth = width;
    ink.beginPath();
    ink.moveTo(x - arm, y - arm);
    ink.lineTo(x + arm, y + arm);
    ink.moveTo(x + arm, y - arm);
    ink.lineTo(x - arm, y + arm);
    ink.stroke();
  }

  /** A seat as one sees it when close: its number, its sign. */
  drawSeat(seat) {
    const { ink, layout, look } = this, pitch = layout.parts[layout.partOf[seat]].pitch;
    const half = pitch * 0.43, category = layout.category[seat], kind = Look.kind(this.states[seat]);
    const trait = layout.trait[seat], isOwn = this.own.has(seat), isMine = isOwn || this.chosen.has(seat);
    ink.save();
    ink.translate(layout.x[seat], layout.y[seat]);
    ink.rotate(layout.turn[seat]);
    if (isMine) ink.scale(1.14, 1.14);
    ink.beginPath();
    ink.roundRect(-half, -half, half * 2, half * 2, half * 0.55);
    if (kind === "held" && !isMine) {
      ink.strokeStyle = look.colours[category];
      ink.lineWidth = pitch * 0.07;
      ink.setLineDash([pitch * 0.16, pitch * 0.1]);
      ink.stroke();
    } else if (kind === "free" || isMine) {
      ink.fillStyle = isOwn ? look.good : isMine ? look.ink : look.colours[category];
      ink.fill();
      ink.strokeStyle = isOwn ? look.good : look.red;
      ink.lineWidth = pitch * 0.08;
      if (isMine) ink.stroke();
    } else {
      ink.fillStyle = look.sunk;
      ink.fill();
      this.drawCross(ink, 0, 0, half * 0.42, pitch * 0.07);
    }
    if (trait === RESTRICTED && !isMine) this.cutAt(half);
    ink.restore();
    if (kind === "gone" && !isMine) return;
    const colour = kind === "held" && !isMine ? look.soft : isMine ? look.paper : look.texts[category];
    if (trait === COMPANION && !isMine) this.ringAt(seat, half * 0.72, colour, pitch * 0.05);
    const text = isMine ? "✓" : trait === WHEELCHAIR ? "♿︎" : numberOf(layout, seat);
    const px = this.drawn.scale * pitch * (text.length > 2 ? 0.36 : 0.42);
    this.write(text, layout.x[seat], layout.y[seat], { px, colour, weight: 700 });
  }

  /** Ours: dark, ticked and a little bigger, at every level. */
  drawChosen() {
    const { ink, layout, look, drawn } = this;
    if (this.level === "numbers") {
      for (const seat of this.chosen) this.drawSeat(seat);
      return;
    }
    for (const { from, to, radius } of marksOf(layout, this.chosen, drawn.scale)) {
      ink.lineCap = "round";
      for (const [wide, colour] of [[radius * 2 + 2 / drawn.scale, look.card], [radius * 2, look.ink]]) {
        ink.beginPath();
        ink.moveTo(layout.x[from], layout.y[from]);
        ink.lineTo(layout.x[to], layout.y[to]);
        ink.lineWidth = wide;
        ink.strokeStyle = colour;
        ink.stroke();
      }
      ink.lineCap = "butt";
      const px = radius * drawn.scale * 1.3;
      if (px > 8) this.write("✓", layout.x[from], layout.y[from], { px, colour: look.paper });
    }
  }

  ringAt(seat, radius, colour, width) {
    const { ink, layout } = this;
    ink.beginPath();
    ink.arc(layout.x[seat], layout.y[seat], radius, 0, 7);
    ink.strokeStyle = colour;
    ink.lineWidth = width;
    ink.stroke();
  }

  /** A corner is missing: so is a part of the view. */
  cutAt(half) {
    const { ink, look } = this;
    ink.beginPath();
    ink.moveTo(half * 1.02, half * 0.1);
    ink.lineTo(half * 1.02, half * 1.02);
    ink.lineTo(half * 0.1, half * 1.02);
    ink.fillStyle = look.paper;
    ink.fill();
  }
}
