// The tooltip of the map, for a mouse: what is under it.

import { nearestSeat, partAt } from "./layout.js";

const NEAR_PX = 5; // between seats: below that, the tooltip is of the section

export class Tip {
  constructor(element, gesture, selection, left) {
    Object.assign(this, { element, gesture, selection, left });
  }

  /** `at` in pixels of the map; null: the mouse has left it. */
  show(at) {
    const { element, gesture } = this, lines = at && this.linesAt(gesture.world(at));
    element.hidden = !lines;
    if (!lines) return;
    element.replaceChildren(...lines.filter(Boolean).map((line, place) =>
      Object.assign(document.createElement(place ? "span" : "strong"), { textContent: line })));
    const left = Math.min(gesture.width - element.offsetWidth - 8, Math.max(8, at.x - element.offsetWidth / 2));
    const top = at.y - element.offsetHeight - 16;
    element.style.transform = `translate(${left}px, ${top < 4 ? at.y + 22 : top}px)`;
  }

  linesAt({ x, y }) {
    const { gesture, selection } = this, { layout, l10n } = selection;
    const seat = nearestSeat(layout, x, y, layout.pitch * 0.7, () => true);
    const isNear = gesture.view.scale * layout.pitch >= NEAR_PX;
    if (seat >= 0 && isNear) {
      const price = `${selection.categoryOf(seat)} · ${l10n.price(selection.priceOf(seat))}`;
      return [selection.nameOf(seat), price, selection.noteOf(seat), selection.stateName(seat)];
    }
    const here = partAt(layout, x, y);
    if (!here || (isNear && !here.isArea)) return null;
    const from = here.free ? l10n.t("from", { price: l10n.price(here.fromMinor) }) : "";
    return [l10n.partName(here), from, this.left(here)];
  }
}
