// Colours and signs of the map, in light, in dark, and where the system dictates its own.

import { FREE, HELD } from "./states.js";

const NAMES = ["paper", "card", "sunk", "ink", "soft", "line", "red", "good"];

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
    this.isForced = this.forced.matches; // reading it may cost a layout: once, not for every part
    if (this.isForced) {
      Object.assign(this, {
        paper: "Canvas", card: "Canvas", sunk: "Canvas", ink: "CanvasText", soft: "CanvasText",
        line: "CanvasText", red: "Highlight", good: "Highlight", gone: "GrayText",
      });
      this.colours = this.categories.map(() => "LinkText");
    }
    this.texts = this.colours.map((colour) => textOn(colour));
    if (this.isForced) this.texts = this.colours.map(() => "Canvas");
  }

  /** "free", "held" (in another basket) or "gone". */
  static kind(state) {
    return state === FREE ? "free" : state === HELD ? "held" : "gone";
  }
}

const rgbOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/** Black or white, whichever reads better: one of them always has a contrast of at least 4.5 to 1. */
export function textOn(colour) {
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = rgbOf(colour).map((value) => linear(value / 255));
  const luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000000" : "#ffffff";
}

/** A colour laid over another, as "#rrggbb". */
export function mixed(over, under, alpha) {
  const below = rgbOf(under);
  const parts = rgbOf(over).map((value, at) => Math.round(value * alpha + below[at] * (1 - alpha)));
  return `#${parts.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}
