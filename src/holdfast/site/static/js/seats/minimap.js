// The whole hall in a corner, with a frame around what is seen; only while that is not everything.

export class Minimap {
  constructor(element, layout, look, { went }) {
    Object.assign(this, { element, layout, look });
    this.canvas = element.querySelector("canvas");
    this.frame = element.querySelector("i");
    const go = (event) => {
      const box = this.canvas.getBoundingClientRect(), [left, top] = layout.bounds;
      const x = (event.clientX - box.left) / this.scale, y = (event.clientY - box.top) / this.scale;
      went({ x: left + x, y: top + y });
    };
    element.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      element.setPointerCapture(event.pointerId);
      go(event);
    });
    element.addEventListener("pointermove", (event) => {
      if (element.hasPointerCapture(event.pointerId)) go(event);
    });
  }

  draw() {
    const [left, top, right, bottom] = this.layout.bounds, wide = 116;
    this.scale = Math.min(wide / (right - left), 96 / (bottom - top));
    const density = Math.min(2, devicePixelRatio || 1), ink = this.canvas.getContext("2d");
    const width = (right - left) * this.scale, height = (bottom - top) * this.scale;
    this.canvas.width = width * density;
    this.canvas.height = height * density;
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    ink.setTransform(this.scale * density, 0, 0, this.scale * density, -left * this.scale * density,
      -top * this.scale * density);
    const fill = (outline, colour) => {
      ink.beginPath();
      for (const [x, y] of outline) ink.lineTo(x, y);
      ink.closePath();
      ink.fillStyle = colour;
      ink.fill();
    };
    for (const { outline } of this.layout.shapes) fill(outline, this.look.line);
    for (const part of this.layout.parts) fill(part.outline, this.look.colours[part.category]);
  }

  show(view, width, height, isClose) {
    this.element.hidden = !isClose;
    if (!isClose) return;
    if (!this.scale) this.draw();
    const [left, top] = this.layout.bounds, { scale } = this;
    Object.assign(this.frame.style, {
      left: `${(view.x - width / view.scale / 2 - left) * scale}px`,
      top: `${(view.y - height / view.scale / 2 - top) * scale}px`,
      width: `${(width / view.scale) * scale}px`,
      height: `${(height / view.scale) * scale}px`,
    });
  }
}
