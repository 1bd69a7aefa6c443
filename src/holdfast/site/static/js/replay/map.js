// Draws the seats of a hall: by their state, or by how much they were wanted.

import { BLOCKED, BOOKED, FREE, HELD } from "./tape.js";

const STEPS = 65535; // of a coordinate
const SEAT_NAMES = ["free", "held", "booked", "blocked"];
const HEAT_STOPS = 5;
const HEAT_COLOURS = 32;
const DOTS_FROM = 2.6; // pixels between seats: below, a seat is a square without a gap
const MARGIN = 12;

export class SeatMapView {
  constructor(canvas, data, points) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.data = data;
    const [left, top, right, bottom] = data.bounds;
    this.wide = Math.max(right - left, 0.01);
    this.high = Math.max(bottom - top, 0.01);
    const places = new DataView(points.buffer, points.byteOffset);
    this.x = new Float32Array(data.seats);
    this.y = new Float32Array(data.seats);
    for (let seat = 0; seat < data.seats; seat += 1) {
      this.x[seat] = (places.getUint16(seat * 4, true) / STEPS) * this.wide;
      this.y[seat] = (places.getUint16(seat * 4 + 2, true) / STEPS) * this.high;
    }
    this.areaOf = new Int32Array(data.seats).fill(-1);
    data.areas.forEach((area, number) =>
      this.areaOf.fill(number, area.start, area.start + area.capacity));
    this.pitch = this.findPitch();
    this.byHeat = false;
    this.heatMax = 1;
  }

  /** The usual distance between neighbours, in layout units. */
  findPitch() {
    const found = [];
    const every = Math.max(1, Math.floor(this.data.seats / 2000));
    for (let seat = 1; seat < this.data.seats; seat += every) {
      if (this.areaOf[seat] >= 0) continue;
      const distance = Math.hypot(this.x[seat] - this.x[seat - 1], this.y[seat] - this.y[seat - 1]);
      if (distance > 0) found.push(distance);
    }
    found.sort((a, b) => a - b);
    return found[Math.floor(found.length / 2)] ?? 1;
  }

  /** Fits the canvas to its box; colours may have changed, too. */
  resize() {
    const style = getComputedStyle(this.canvas);
    const name = (text) => style.getPropertyValue(text).trim();
    this.colours = SEAT_NAMES.map((each) => name(`--seat-${each}`));
    this.line = name("--line");
    this.soft = name("--soft");
    this.font = name("--body") || "sans-serif";
    this.heats = ramp(Array.from({ length: HEAT_STOPS }, (_, at) => name(`--heat-${at}`)));
    const width = this.canvas.clientWidth;
    const height = Math.min(
      Math.max(width * (this.high / this.wide) + 2 * MARGIN, 140),
      Math.max(innerHeight * 0.62, 260),
    );
    this.canvas.style.blockSize = `${height}px`;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const space = MARGIN + this.pitch;
    this.scale = Math.min((width - 2 * MARGIN) / (this.wide + this.pitch),
      (height - 2 * MARGIN) / (this.high + this.pitch));
    this.left = (width - this.wide * this.scale) / 2;
    this.top = (height - this.high * this.scale) / 2;
    const step = this.pitch * this.scale;
    this.dot = step >= DOTS_FROM ? Math.min(step * 0.82, 22) : Math.max(step * 1.05, 0.8);
    this.isRound = this.dot > 5 && space > 0;
  }

  draw(tape) {
    if (tape.isNew || tape.changed.length > this.data.seats / 3) this.drawAll(tape);
    else this.drawSome(tape);
    tape.isNew = false;
    tape.changed.length = 0;
  }

  drawAll(tape) {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    this.drawHall();
    for (let seat = 0; seat < this.data.seats; seat += 1) {
      if (this.areaOf[seat] < 0) this.drawSeat(tape, seat);
    }
    this.data.areas.forEach((_, number) => this.drawArea(tape, number));
  }

  drawSome(tape) {
    const areas = new Set();
    for (const seat of tape.changed) {
      if (this.areaOf[seat] < 0) this.drawSeat(tape, seat);
      else areas.add(this.areaOf[seat]);
    }
    for (const number of areas) this.drawArea(tape, number);
  }

  drawHall() {
    const { context } = this;
    context.lineWidth = 1;
    context.strokeStyle = this.line;
    for (const outline of [...this.data.shapes, ...this.data.sections.map((one) => one.outline)]) {
      if (outline.length > 2) context.stroke(this.path(outline));
    }
    const [x, y] = this.at(this.data.stage.at);
    context.fillStyle = this.soft;
    context.font = `700 12px ${this.font}`;
    context.textAlign = "center";
    context.textBaseline = y < this.canvas.clientHeight / 2 ? "top" : "bottom";
    const half = context.measureText(this.data.stage.name).width / 2 + 2;
    const inside = Math.min(Math.max(x, half), this.canvas.clientWidth - half);
    context.fillText(this.data.stage.name, inside, Math.min(Math.max(y, 2), this.canvas.clientHeight - 2));
  }

  drawSeat(tape, seat) {
    const { context, dot } = this;
    const x = this.left + this.x[seat] * this.scale;
    const y = this.top + this.y[seat] * this.scale;
    context.fillStyle = this.colour(tape, seat);
    if (!this.isRound) {
      context.fillRect(x - dot / 2, y - dot / 2, dot, dot);
      return;
    }
    context.beginPath();
    context.arc(x, y, dot / 2, 0, 2 * Math.PI);
    context.fill();
  }

  colour(tape, seat) {
    if (!this.byHeat) return this.colours[tape.states[seat]];
    return this.heatColour(tape.heat[seat]);
  }

  heatColour(times) {
    if (!times) return this.colours[FREE];
    // By logarithm: the most wanted seat may be wanted a thousand times as much as the next.
    const share = Math.min(1, Math.log1p(times) / Math.log1p(this.heatMax));
    return this.heats[Math.round(share * (HEAT_COLOURS - 1))];
  }

  /** A standing area fills from its bottom: booked places, then held ones. */
  drawArea(tape, number) {
    const { context } = this;
    const area = this.data.areas[number];
    const counts = [0, 0, 0, 0];
    let heat = 0;
    for (let seat = area.start; seat < area.start + area.capacity; seat += 1) {
      counts[tape.states[seat]] += 1;
      heat += tape.heat[seat];
    }
    const shape = this.path(area.outline);
    const ys = area.outline.map((point) => this.at(point)[1]);
    const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
    context.save();
    context.clip(shape);
    context.fillStyle = this.byHeat ? this.heatColour(Math.round(heat / area.capacity)) : this.colours[FREE];
    context.fillRect(0, top, this.canvas.clientWidth, bottom - top);
    let level = bottom;
    for (const state of this.byHeat ? [] : [BOOKED, HELD, BLOCKED]) {
      const part = ((bottom - top) * counts[state]) / area.capacity;
      context.fillStyle = this.colours[state];
      context.fillRect(0, level - part, this.canvas.clientWidth, part);
      level -= part;
    }
    context.restore();
    context.strokeStyle = this.line;
    context.stroke(shape);
  }

  at([x, y]) {
    const [left, top] = this.data.bounds;
    return [this.left + (x - left) * this.scale, this.top + (y - top) * this.scale];
  }

  path(outline) {
    const path = new Path2D();
    outline.forEach((point, at) => (at ? path.lineTo(...this.at(point)) : path.moveTo(...this.at(point))));
    path.closePath();
    return path;
  }
}

function ramp(stops) {
  const parts = stops.map((colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16)));
  return Array.from({ length: HEAT_COLOURS }, (_, at) => {
    const place = (at / (HEAT_COLOURS - 1)) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const mixed = parts[low].map((value, part) => value + (parts[low + 1][part] - value) * (place - low));
    return `rgb(${mixed.map(Math.round).join(" ")})`;
  });
}
