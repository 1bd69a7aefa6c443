// The sale over time: seats sold and held, refused holds, people in the queue; and where we are.

import { BOOKED, HELD, Tape } from "./tape.js";

const COLUMNS = 240;
const NAMES = ["sold", "held", "refused", "waiting"];
const TOP = 10;

export class Curve {
  constructor(canvas, events, seats) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.tape = new Tape(events, seats);
    this.seats = seats;
  }

  /** Samples the sale up to `endMs`. */
  measure(endMs) {
    this.endMs = Math.max(endMs, 1);
    this.values = Object.fromEntries(NAMES.map((name) => [name, new Float64Array(COLUMNS + 1)]));
    this.tape.rewind();
    let before = 0;
    for (let column = 0; column <= COLUMNS; column += 1) {
      this.tape.seek((this.endMs * column) / COLUMNS);
      this.tape.changed.length = 0;
      this.values.sold[column] = this.tape.counts[BOOKED];
      this.values.held[column] = this.tape.counts[HELD];
      this.values.refused[column] = this.tape.refused - before;
      this.values.waiting[column] = this.tape.waiting;
      before = this.tape.refused;
    }
  }

  resize() {
    const style = getComputedStyle(this.canvas);
    const name = (text) => style.getPropertyValue(text).trim();
    this.colours = {
      sold: name("--seat-booked"), held: name("--seat-held"), refused: name("--refused"),
      waiting: name("--queue"), line: name("--line"), ink: name("--ink"),
    };
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  draw(atMs) {
    const { context, canvas } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    context.clearRect(0, 0, width, height);
    context.strokeStyle = this.colours.line;
    context.lineWidth = 1;
    for (const share of [0.25, 0.5, 0.75, 1]) {
      const y = height - (height - TOP) * share;
      context.strokeRect(0, y, width, 0);
    }
    this.drawBars("refused", width, height);
    this.drawLine("sold", this.seats, true);
    this.drawLine("held", this.seats, false);
    const most = Math.max(...this.values.waiting);
    if (most) this.drawLine("waiting", most, false);
    const x = Math.min(Math.max((width * atMs) / this.endMs, 1), width - 1);
    context.strokeStyle = this.colours.ink;
    context.lineWidth = 2;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
  }

  drawBars(name, width, height) {
    const values = this.values[name];
    const most = Math.max(...values);
    if (!most) return;
    const wide = width / COLUMNS;
    this.context.fillStyle = this.colours[name];
    values.forEach((value, column) => {
      if (!value) return;
      const high = Math.max(2, ((height - TOP) * value) / most);
      this.context.fillRect(Math.max(0, (column - 1) * wide), height - high, Math.max(wide - 0.5, 1), high);
    });
  }

  drawLine(name, most, isFilled) {
    const { context, canvas } = this;
    const height = canvas.clientHeight;
    const y = (value) => height - ((height - TOP) * value) / Math.max(most, 1);
    context.beginPath();
    this.values[name].forEach((value, column) => {
      context.lineTo((canvas.clientWidth * column) / COLUMNS, y(value));
    });
    context.lineWidth = 2;
    context.strokeStyle = this.colours[name];
    context.stroke();
    if (!isFilled) return;
    context.lineTo(canvas.clientWidth, height);
    context.lineTo(0, height);
    context.globalAlpha = 0.25;
    context.fillStyle = this.colours[name];
    context.fill();
    context.globalAlpha = 1;
  }
}
