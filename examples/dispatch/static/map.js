// Draws the city: hexagons by demand, drivers by state, offers, rides, riders. Positions are in units of 10 m.

const STATES = ["offline", "free", "offered", "pickup", "riding"];
const FRAME_MS = 200; // between two frames of the server: cars move from one to the next in this time
const ZOOM_MAX = 8;
const still = matchMedia("(prefers-reduced-motion: reduce)");
const dark = matchMedia("(prefers-color-scheme: dark)");

export class CityMap {
  constructor(canvas, city) {
    this.canvas = canvas;
    this.paint = canvas.getContext("2d");
    this.cells = city.cells;
    this.demand = new Map(); // index of a cell -> waiting riders
    this.byCentre = new Map(city.centres.map(([x, y], index) => [`${x},${y}`, index]));
    const xs = city.cells.flatMap((cell) => cell.filter((_, at) => at % 2 === 0));
    const ys = city.cells.flatMap((cell) => cell.filter((_, at) => at % 2 === 1));
    this.box = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    this.zoom = 1;
    this.shift = [0, 0]; // of the middle of the picture, in city units
    this.before = this.frame = null;
    this.readColours();
    dark.addEventListener("change", () => this.readColours());
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.resize();
    const draw = (now) => { this.draw(now); requestAnimationFrame(draw); };
    requestAnimationFrame(draw);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const names = [...STATES, "rider", "cell", "line", "ink", "soft", "card"];
    this.colours = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }

  resize() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
  }

  show(frame) {
    this.before = this.frame ?? frame;
    this.frame = frame;
    this.arrived = performance.now();
    this.demand.clear();
    for (const [x, y] of frame.waiting) {
      const cell = this.byCentre.get(`${x},${y}`);
      this.demand.set(cell, (this.demand.get(cell) ?? 0) + 1);
    }
  }

  zoomBy(factor) {
    this.zoom = factor === 0 ? 1 : Math.min(ZOOM_MAX, Math.max(1, this.zoom * factor));
    if (this.zoom === 1) this.shift = [0, 0];
    this.canvas.style.touchAction = this.zoom > 1 ? "none" : "pan-y";
  }

  /** By so many pixels of the screen. */
  moveBy(x, y) {
    if (this.zoom > 1) this.shift = [this.shift[0] - x / this.scale, this.shift[1] - y / this.scale];
  }

  get scale() {
    const [left, top, right, bottom] = this.box;
    const fit = Math.min(this.canvas.clientWidth / (right - left), this.canvas.clientHeight / (bottom - top));
    return fit * 0.96 * this.zoom;
  }

  draw(now) {
    if (!this.frame) return;
    const { paint, canvas } = this;
    const ratio = devicePixelRatio || 1;
    const scale = this.scale;
    const [left, top, right, bottom] = this.box;
    const middle = [(left + right) / 2 + this.shift[0], (top + bottom) / 2 + this.shift[1]];
    const moved = still.matches ? 1 : Math.min(1, (now - this.arrived) / FRAME_MS);
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, canvas.width, canvas.height);
    paint.setTransform(ratio * scale, 0, 0, ratio * scale, canvas.width / 2 - ratio * scale * middle[0],
      canvas.height / 2 - ratio * scale * middle[1]);
    // Signs have a size that a person can see, however small the map is, and grow a little with the zoom.
    this.size = (canvas.clientWidth < 600 ? 5.5 : 8.5) * Math.sqrt(this.zoom) / scale;
    this.hair = 1 / scale;
    const cars = this.cars(moved);
    this.drawCells();
    this.drawRides(cars);
    this.drawOffers(cars, now);
    this.drawRiders();
    this.drawCars(cars);
  }

  cars(moved) {
    const { cars } = this.frame;
    const from = this.before.cars;
    const found = [];
    for (let at = 0; at < cars.length; at += 3) {
      found.push([from[at] + (cars[at] - from[at]) * moved, from[at + 1] + (cars[at + 1] - from[at + 1]) * moved,
        cars[at + 2]]);
    }
    return found;
  }

  drawCells() {
    const { paint, colours } = this;
    paint.lineWidth = this.hair;
    this.cells.forEach((cell, index) => {
      paint.beginPath();
      for (let at = 0; at < cell.length; at += 2) paint.lineTo(cell[at], cell[at + 1]);
      paint.closePath();
      paint.fillStyle = colours.cell;
      paint.fill();
      const riders = this.demand.get(index) ?? 0;
      if (riders) {
        paint.globalAlpha = Math.min(0.5, 0.12 + riders * 0.1);
        paint.fillStyle = colours.rider;
        paint.fill();
        paint.globalAlpha = 1;
      }
      paint.strokeStyle = colours.line;
      paint.stroke();
    });
  }

  line(from, to, colour, { width, dash = [] }) {
    const { paint } = this;
    paint.beginPath();
    paint.setLineDash(dash.map((one) => one * this.hair));
    paint.moveTo(...from);
    paint.lineTo(...to);
    paint.strokeStyle = colour;
    paint.lineWidth = width * this.hair;
    paint.stroke();
    paint.setLineDash([]);
  }

  drawRides(cars) {
    const { paint, colours, size } = this;
    for (const [driver, fromX, fromY, toX, toY] of this.frame.rides) {
      const [x, y, state] = cars[driver];
      paint.globalAlpha = 0.5;
      if (STATES[state] === "pickup") {
        this.line([x, y], [fromX, fromY], colours.pickup, { width: 1.4, dash: [4, 3] });
        paint.globalAlpha = 0.9;
        this.diamond(fromX, fromY, size * 0.55, colours.pickup);
      } else {
        this.line([x, y], [toX, toY], colours.riding, { width: 1.2 });
        paint.globalAlpha = 0.7;
        paint.fillStyle = colours.riding;
        paint.fillRect(toX - size * 0.22, toY - size * 0.22, size * 0.44, size * 0.44);
      }
    }
    paint.globalAlpha = 1;
  }

  drawOffers(cars, now) {
    const { paint, colours, size } = this;
    const wave = still.matches ? 0.5 : (now % 1200) / 1200;
    for (const [driver, x, y, left] of this.frame.offers) {
      const [carX, carY] = cars[driver];
      this.line([carX, carY], [x, y], colours.offered, { width: 1.6, dash: [2, 3] });
      paint.globalAlpha = (1 - wave) * 0.45;
      this.dot(carX, carY, size * (0.6 + 1.5 * wave), colours.offered);
      paint.globalAlpha = 1;
      // The time that is left, as a part of a circle.
      paint.beginPath();
      paint.arc(carX, carY, size * 1.05, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.max(0, left));
      paint.lineWidth = size * 0.28;
      paint.strokeStyle = colours.offered;
      paint.stroke();
    }
  }

  drawRiders() {
    for (const [x, y, waited] of this.frame.waiting) {
      this.diamond(x, y, this.size * Math.min(1.2, 0.65 + waited / 60), this.colours.rider);
    }
  }

  drawCars(cars) {
    const { paint, colours, size } = this;
    for (const [x, y, number] of cars) {
      const state = STATES[number];
      const colour = colours[state];
      if (state === "offline") {
        paint.beginPath();
        paint.arc(x, y, size * 0.38, 0, 2 * Math.PI);
        paint.lineWidth = 1.4 * this.hair;
        paint.strokeStyle = colour;
        paint.stroke();
      } else if (state === "pickup") {
        paint.fillStyle = colour;
        paint.fillRect(x - size * 0.48, y - size * 0.48, size * 0.96, size * 0.96);
      } else if (state === "riding") {
        paint.beginPath();
        paint.moveTo(x, y - size * 0.7);
        paint.lineTo(x + size * 0.6, y + size * 0.5);
        paint.lineTo(x - size * 0.6, y + size * 0.5);
        paint.closePath();
        paint.fillStyle = colour;
        paint.fill();
      } else {
        this.dot(x, y, size * (state === "offered" ? 0.62 : 0.45), colour);
      }
    }
  }

  dot(x, y, radius, colour) {
    this.paint.beginPath();
    this.paint.arc(x, y, radius, 0, 2 * Math.PI);
    this.paint.fillStyle = colour;
    this.paint.fill();
  }

  diamond(x, y, radius, colour) {
    const { paint } = this;
    paint.beginPath();
    paint.moveTo(x, y - radius);
    paint.lineTo(x + radius, y);
    paint.lineTo(x, y + radius);
    paint.lineTo(x - radius, y);
    paint.closePath();
    paint.fillStyle = colour;
    paint.fill();
    paint.lineWidth = this.hair;
    paint.strokeStyle = this.colours.card;
    paint.stroke();
  }
}
