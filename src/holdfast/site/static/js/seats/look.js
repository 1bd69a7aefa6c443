// Colours and signs of the map, in light, in dark, and where the system dictates its own.

import { FREE, HELD } from "./states.js";

const NAMES = ["paper", "card", "sunk", "ink", "soft", "line", "red"];

export class Look {
  constructor(layout, changed) {
    this.categories = layout.categories.map((category) => category.colour);
    this.forced = matchMedia("(forced-colors: active)");
    const again = () => {
      this.read();
      changed();
    };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    this.forced.addEventListener("change", again);
    this.read();
  }

  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of NAMES) this[name] = style.getPropertyValue(`--${name}`).trim();
    this.isDark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.gone = this.isDark ? "#6d655a" : "#b5aa9a";
    this.body = style.getPropertyValue("--body");
    this.colours = this.categories;
    if (this.forced.matches) {
      Object.assign(this, {
        paper: "Canvas", card: "Canvas", sunk: "Canvas", ink: "CanvasText", soft: "CanvasText",
        line: "CanvasText", red: "Highlight", gone: "GrayText",
      });
      this.colours = this.categories.map(() => "LinkText");
    }
    this.texts = this.colours.map((colour) => (isLight(colour) ? "#1b1712" : "#ffffff"));
    if (this.forced.matches) this.texts = this.colours.map(() => "Canvas");
  }

  /** "free", "held" (in another basket) or "gone". */
  static kind(state) {
    return state === FREE ? "free" : state === HELD ? "held" : "gone";
  }
}

function isLight(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.3;
}
