// Fingers, wheel and keys move a view of the hall: {x, y} in the middle, `scale` pixels a metre.
// While something moves, only the painter's transform changes; it repaints when the view has settled.

const SETTLE_MS = 100;
const SLOP_PX = 8; // a finger that moved less has tapped
const DOUBLE_MS = 320;
const STEP = 1.6;
const GLIDE_MS = 260;

export class Gesture {
  /** `painter` has move(view) and settle(view); `tapped({x, y, touch})` answers whether it did something. */
  constructor(element, bounds, painter, { tapped, hovered, settled, pitch }) {
    this.element = element;
    this.bounds = bounds;
    this.painter = painter;
    this.tapped = tapped;
    this.hovered = hovered;
    this.settled = settled;
    this.pitch = pitch;
    this.pointers = new Map();
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)");
    this.measure();
    this.view = this.fitted(bounds);
    this.listen();
  }

  measure() {
    const { width, height } = this.element.getBoundingClientRect();
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    const whole = this.fitted(this.bounds).scale;
    this.least = whole;
    this.most = Math.max(whole * 1.5, 56 / this.pitch);
  }

  /** The view in which a box of the hall fills the element. */
  fitted([left, top, right, bottom], room = 0.95) {
    const scale = Math.min(this.width / (right - left), this.height / (bottom - top)) * room;
    return { x: (left + right) / 2, y: (top + bottom) / 2, scale };
  }

  listen() {
    const on = (name, call, options) => this.element.addEventListener(name, call.bind(this), options);
    on("pointerdown", this.down);
    on("pointermove", this.moved);
    on("pointerup", this.up);
    on("pointercancel", this.cancelled);
    on("pointerleave", () => this.hovered(null));
    on("wheel", this.wheeled, { passive: false });
    on("keydown", this.keyed);
    new ResizeObserver(() => {
      const box = this.element.getBoundingClientRect();
      if (box.width === this.width && box.height === this.height) return; // also called once at the start
      const isWhole = this.view.scale <= this.least * 1.01;
      this.measure();
      this.set(isWhole ? this.fitted(this.bounds) : this.view);
      this.settle();
    }).observe(this.element);
  }

  place(event) {
    const box = this.element.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  /** From pixels of the element to metres of the hall. */
  world({ x, y }) {
    const { view } = this;
    return {
      x: view.x + (x - this.width / 2) / view.scale,
      y: view.y + (y - this.height / 2) / view.scale,
    };
  }

  screen(x, y) {
    const { view } = this;
    return {
      x: (x - view.x) * view.scale + this.width / 2,
      y: (y - view.y) * view.scale + this.height / 2,
    };
  }

  down(event) {
    if (event.button || event.target.closest("button, .minimap")) return;
    this.stopGliding();
    this.pointers.set(event.pointerId, this.place(event));
    // A finger that left the element still belongs to the gesture it began.
    this.element.setPointerCapture(event.pointerId);
    if (this.pointers.size === 1) this.start = { ...this.place(event), isTap: true };
    else this.start.isTap = false;
    this.hovered(null);
  }

  moved(event) {
    const at = this.place(event), before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.hovered(at);
      return;
    }
    if (Math.hypot(at.x - this.start.x, at.y - this.start.y) > SLOP_PX) this.start.isTap = false;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    this.pointers.set(event.pointerId, at);
    if (others.length) this.pinched(before, at, others[0]);
    else if (!this.start.isTap && this.isClose) this.panBy(before.x - at.x, before.y - at.y);
  }

  pinched(before, at, other) {
    const apart = (a) => Math.max(10, Math.hypot(a.x - other.x, a.y - other.y));
    const middle = (a) => ({ x: (a.x + other.x) / 2, y: (a.y + other.y) / 2 });
    this.zoomBy(apart(at) / apart(before), middle(at));
    this.panBy(middle(before).x - middle(at).x, middle(before).y - middle(at).y);
  }

  up(event) {
    const had = this.pointers.delete(event.pointerId);
    if (!had || this.pointers.size) return;
    if (this.start.isTap) this.tap(this.place(event), event.pointerType !== "mouse");
    else this.settle();
  }

  cancelled(event) {
    this.pointers.delete(event.pointerId);
    this.settle();
  }

  tap(at, isTouch) {
    const now = performance.now(), last = this.lastTap;
    const isDouble = last && now - last.when < DOUBLE_MS && Math.hypot(at.x - last.x, at.y - last.y) < 30;
    const didSomething = this.tapped({ ...this.world(at), isTouch });
    if (isDouble && !didSomething && !last.didSomething) this.glide(this.zoomed(STEP * 1.5, at));
    this.lastTap = { ...at, when: now, didSomething };
  }

  wheeled(event) {
    const factor = Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022) * (event.ctrlKey ? 3 : 1));
    // The whole hall is in sight: scrolling the page is not blocked unless the map has focus or the reader pinches.
    const isForMap = event.ctrlKey || document.activeElement === this.element;
    if (!this.isClose && (factor < 1 || !isForMap)) return;
    event.preventDefault();
    this.stopGliding();
    this.zoomBy(factor, this.place(event));
  }

  keyed(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const far = 80;
    const keys = {
      "+": () => this.zoomStep(STEP), "=": () => this.zoomStep(STEP), "-": () => this.zoomStep(1 / STEP),
      0: () => this.fit(), ArrowLeft: () => this.panBy(-far, 0), ArrowRight: () => this.panBy(far, 0),
      ArrowUp: () => this.panBy(0, -far), ArrowDown: () => this.panBy(0, far),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  /** Whether there is more of the hall than fits. */
  get isClose() {
    return this.view.scale > this.least * 1.01;
  }

  panBy(dx, dy) {
    this.set({ ...this.view, x: this.view.x + dx / this.view.scale, y: this.view.y + dy / this.view.scale });
    this.settleSoon();
  }

  zoomed(factor, at = { x: this.width / 2, y: this.height / 2 }) {
    const under = this.world(at);
    const scale = Math.min(this.most, Math.max(this.least, this.view.scale * factor));
    return {
      scale,
      x: under.x - (at.x - this.width / 2) / scale,
      y: under.y - (at.y - this.height / 2) / scale,
    };
  }

  zoomBy(factor, at) {
    this.set(this.zoomed(factor, at));
    this.settleSoon();
  }

  zoomStep(factor) {
    this.glide(this.zoomed(factor));
  }

  fit() {
    this.glide(this.fitted(this.bounds));
  }

  /** Show a box of the hall; seats in it are at least `pitchPx` apart, if given, and `at` is in the middle. */
  show(box, { pitchPx = 0, around = null, at = null } = {}) {
    const view = this.fitted(box, 0.9);
    view.scale = Math.min(this.most, Math.max(view.scale, pitchPx / this.pitch, this.least));
    const wide = (box[2] - box[0]) * view.scale, high = (box[3] - box[1]) * view.scale;
    if (around && (wide > this.width || high > this.height)) Object.assign(view, around);
    if (at) Object.assign(view, at);
    this.glide(view);
  }

  /** What is looked at stays in the hall. */
  set(view) {
    const [left, top, right, bottom] = this.bounds;
    const within = (value, low, high) => Math.min(high, Math.max(low, value));
    const clamp = (value, low, high) => (low > high ? (low + high) / 2 : within(value, low, high));
    const halfX = this.width / view.scale / 2, halfY = this.height / view.scale / 2;
    const room = Math.min(halfX, halfY) * 0.5;
    this.view = {
      scale: view.scale,
      x: clamp(view.x, left - room + halfX, right + room - halfX),
      y: clamp(view.y, top - room + halfY, bottom + room - halfY),
    };
    // A map that shows everything lets the page scroll; one that can be moved keeps the finger.
    this.element.style.touchAction = this.isClose ? "none" : "pan-y";
    this.painter.move(this.view);
  }

  glide(to) {
    this.stopGliding();
    if (this.isCalm.matches || document.hidden) {
      this.set(to);
      this.settle();
      return;
    }
    const from = this.view, began = performance.now();
    const frame = (now) => {
      const part = Math.min(1, Math.max(0, (now - began) / GLIDE_MS)), eased = 1 - (1 - part) ** 3;
      const scale = from.scale * (to.scale / from.scale) ** eased;
      // What is between the two middles moves as fast on the screen as the scale lets it.
      const isPan = from.scale === to.scale;
      const share = isPan ? eased : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
      this.set({ scale, x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share });
      if (part < 1) this.gliding = requestAnimationFrame(frame);
      else this.settle();
    };
    this.gliding = requestAnimationFrame(frame);
  }

  stopGliding() {
    cancelAnimationFrame(this.gliding);
  }

  settleSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      if (!this.pointers.size) this.settle();
      else this.settleSoon();
    }, SETTLE_MS);
  }

  settle() {
    clearTimeout(this.settling);
    this.painter.settle(this.view);
    this.settled(this.view);
  }
}
