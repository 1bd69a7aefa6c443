// What is left: counted by part and category, followed change by change, and shown: prices, "sold out", back on sale.

import { FREE, HELD } from "./states.js";

export class Availability {
  constructor(layout, live, prices) {
    Object.assign(this, { layout, live, prices });
  }

  count() {
    const { layout, live } = this;
    for (const part of layout.parts) {
      Object.assign(part, { free: 0, total: 0, byCategory: new Uint32Array(layout.categories.length) });
    }
    for (let seat = 0; seat < layout.count; seat++) {
      const part = layout.parts[layout.partOf[seat]];
      part.total += 1;
      if (live.states[seat] === FREE) part.byCategory[layout.category[seat]] += 1;
    }
    this.known = live.states.slice();
    this.sum();
  }

  sum(parts = this.layout.parts) {
    for (const part of parts) {
      const free = [...part.byCategory.keys()].filter((category) => part.byCategory[category]);
      part.free = free.reduce((total, category) => total + part.byCategory[category], 0);
      part.fromMinor = Math.min(...free.map((category) => this.prices[category]));
    }
  }

  recount(seats) {
    const { layout, live, known } = this, touched = new Set();
    for (const seat of seats) {
      const part = layout.parts[layout.partOf[seat]];
      const was = known[seat] === FREE, is = live.states[seat] === FREE;
      known[seat] = live.states[seat];
      if (was !== is) part.byCategory[layout.category[seat]] += is ? 1 : -1;
      touched.add(part);
    }
    this.sum(touched);
  }

  /** "free"; "held": all that is left is in baskets; "none". */
  get left() {
    if (this.layout.parts.some((part) => part.free)) return "free";
    return this.live.states.includes(HELD) ? "held" : "none";
  }

  freeOf(category) {
    return this.layout.parts.reduce((sum, part) => sum + part.byCategory[category], 0);
  }

  /** The page sells, or says why it does not. */
  show(l10n, announce) {
    for (const band of document.querySelectorAll(".band")) {
      band.querySelector(".band-out").hidden = this.freeOf(band.dataset.band) > 0;
    }
    const page = document.querySelector(".show"), { left } = this, was = page.dataset.left;
    if (left === was) return;
    page.dataset.left = left;
    if (left === "free") announce(l10n.t("again"));
    else announce(page.querySelector(`#sold-out .when-${left} h2`)?.textContent ?? "");
  }
}
