// The selected seats: chosen on the map or in the grid, shown in the panel, held by the server.

import { alternatives, betterThan, replacements, togetherAt } from "./choose.js";
import { labelOf, numberOf, TRAIT_LETTERS } from "./layout.js";
import { FREE, LETTERS } from "./states.js";
import { labels } from "./summary.js";

const AGAIN_MS = 1200;
const ECHO_MS = 1500; // news of a refused hold of our own have arrived by then

export class Selection {
  constructor(data, layout, live, l10n, { announce, shown, repriced }) {
    Object.assign(this, { data, layout, live, l10n, announce, shown, repriced });
    this.seats = [];
    this.area = null; // {part, count}
    this.own = new Map(); // seats that are ours already: {booking, state}
    this.hasSections = layout.parts.filter((part) => !part.isArea).length > 1;
    this.quantity = 2;
    this.isOneByOne = false;
    this.isHolding = false;
    this.key = newKey();
  }

  get chosen() {
    return new Set(this.seats);
  }

  // Words

  nameOf(seat) {
    const run = this.layout.runs[this.layout.runOf[seat]];
    const parts = { row: run.row, number: numberOf(this.layout, seat), section: run.part.name };
    return this.l10n.t(this.hasSections ? "seat" : "seat_plain", parts);
  }

  stateName(seat) {
    const state = this.own.get(seat)?.state ?? LETTERS[this.live.states[seat]];
    return this.l10n.t(`state_${this.chosen.has(seat) ? "mine" : state}`);
  }

  noteOf(seat) {
    const letter = TRAIT_LETTERS[this.layout.trait[seat]];
    return letter === "n" ? "" : this.l10n.t(`note_${letter}`);
  }

  categoryOf(seat) {
    return this.layout.categories[this.layout.category[seat]].name;
  }

  priceOf(seat) {
    return this.data.prices[this.layout.category[seat]];
  }

  /** "Row C seat 14, Gold, 500 rupees, available". */
  describe(seat) {
    const run = this.layout.runs[this.layout.runOf[seat]];
    const name = this.l10n.t("seat_plain", { row: run.row, number: numberOf(this.layout, seat) });
    const price = this.l10n.priceSpoken(this.priceOf(seat));
    const all = [name, this.categoryOf(seat), price, this.noteOf(seat), this.stateName(seat)];
    return all.filter(Boolean).join(", ");
  }

  labels(seats) {
    return labels(this, seats);
  }

  // Choosing

  choose(seat) {
    if (!this.data.open || this.isHolding) return;
    if (this.chosen.has(seat)) {
      this.set(this.seats.filter((other) => other !== seat));
      this.announce(this.l10n.t("removed", { seat: labelOf(this.layout, seat) }));
    } else if (this.own.has(seat)) this.chooseTaken(seat);
    else if (this.live.states[seat] !== FREE) {
      this.announce(this.l10n.t("not_free", { seat: this.nameOf(seat), state: this.stateName(seat) }));
    } else if (this.isOneByOne) this.add(seat);
    else this.takeTogether(seat);
  }

  add(seat) {
    if (this.seats.length >= this.data.most) {
      this.notify(this.l10n.t("full", { count: this.data.most }));
      return;
    }
    this.set([...this.seats, seat].sort((a, b) => a - b));
    this.announceChoice();
  }

  takeTogether(seat) {
    const seats = togetherAt(this.layout, this.live.states, seat, this.quantity);
    this.set(seats);
    const few = seats.length < this.quantity ? this.l10n.t("few", { count: seats.length }) : "";
    if (few) this.notify(few, []);
    this.announceChoice(few);
  }

  /** Tickets of a standing area, as many as wanted. Tapped once more it is given up; a button only adds. */
  choosePart(part, isToggle = true) {
    if (!this.data.open || this.isHolding) return;
    const count = Math.min(this.quantity, this.data.most);
    if (part.free < count) {
      this.notify(this.l10n.t("area_few", { area: part.name }));
      return;
    }
    this.seats = [];
    const isChosen = this.area?.part === part && this.area.count === count;
    this.area = isToggle && isChosen ? null : { part, count };
    this.changed();
    this.announceChoice();
  }

  setQuantity(quantity) {
    const isNew = quantity !== this.quantity;
    this.quantity = quantity;
    if (!isNew || this.isOneByOne) return;
    if (this.area) {
      this.choosePart(this.area.part, false);
    } else if (this.seats.length) this.takeTogether(this.seats[0]);
  }

  set(seats) {
    this.seats = seats;
    this.area = null;
    this.changed();
  }

  /** Another choice: another key, and what there is to say about it. */
  changed() {
    this.key = newKey();
    this.notice = null;
    this.advise();
  }

  /** Warns of a choice that strands a single seat. Another notice stays, unless the choice cannot be held. */
  advise() {
    const better = this.data.orphan === "off" ? null : betterThan(this.layout, this.live.states, this.seats);
    this.isRefused = better !== null && this.data.orphan === "refuse";
    const isFree = !this.notice || this.notice.isAdvice;
    if (better && (isFree || this.isRefused)) {
      const text = this.l10n.t(this.isRefused ? "orphan" : "orphan_warn", { seats: this.labels(better) });
      if (text !== this.notice?.text) this.announce(text);
      this.notice = { text, groups: [better], isAdvice: true };
    } else if (isFree) this.notice = null;
    this.shown();
  }

  /** `more`: seats that are left of a choice (`rest`), a booking to go to, whether the groups are to stand out. */
  notify(text, groups = [], sort = "warn", more = {}) {
    this.notice = { text, groups, sort, ...more };
    this.announce(text);
    this.shown();
  }

  announceChoice(more = "") {
    if (this.area) {
      const { part, count } = this.area;
      this.announce(this.l10n.t("place", { count, area: part.name }));
    } else if (!this.seats.length) this.announce(this.l10n.t("cleared"));
    else {
      const price = this.l10n.price(this.total);
      const seats = this.labels(this.seats), warning = this.notice?.groups.length ? this.notice.text : "";
      const text = this.l10n.t("chosen", { count: this.seats.length, seats, price });
      this.announce([text, more, warning].filter(Boolean).join(" "));
    }
  }

  get total() {
    if (this.area) return this.data.prices[this.area.part.category] * this.area.count;
    return this.sumOf(this.seats);
  }

  sumOf(seats) {
    return seats.reduce((sum, seat) => sum + this.priceOf(seat), 0);
  }

  /** A refused hold may have taken the seats for a moment: the map's news of it are not of other buyers. */
  awaitEcho() {
    clearTimeout(this.echo);
    this.echo = setTimeout(() => {
      this.echo = null;
      this.follow(this.seats);
    }, ECHO_MS);
  }

  /** Seats have changed on the map: some of the selected ones may be taken now. */
  follow(seats) {
    if (this.isHolding || this.echo) return;
    const lost = this.seats.filter((seat) => this.live.states[seat] !== FREE);
    if (lost.length) this.loseSeats(this.seats, lost);
    else if (this.area && this.area.part.free < this.area.count) {
      const { part } = this.area;
      this.area = null;
      this.notify(this.l10n.t("area_few", { area: part.name }), [], "bad");
    } else if (seats.some((seat) => this.chosen.has(seat - 1) || this.chosen.has(seat + 1))) this.advise();
  }

  /**
   * Some of the wanted seats are gone. The best choice of as many that costs no more is selected at once, so that
   * a group stays together; dearer ones are only offered. `instead` is what the server offers, if it refused the hold.
   */
  loseSeats(wanted, lost, instead = replacements(this.layout, this.live.states, wanted, lost)) {
    const [best, ...others] = instead, rest = wanted.filter((seat) => !lost.includes(seat));
    const isSelected = best && this.sumOf(best) <= this.sumOf(wanted);
    this.seats = isSelected ? best : best ? [] : rest;
    this.key = newKey();
    this.isRefused = false;
    const text = [this.l10n.t("taken", { seats: this.labels(lost) })];
    if (isSelected) text.push(this.l10n.t("replaced", { seats: this.labels(best) }));
    else if (best) text.push(this.l10n.t("instead"));
    this.notify(text.join(" "), isSelected ? others.slice(0, 1) : instead, "bad", { rest: best ? rest : [], isLoud: !isSelected });
  }

  /** A taken seat was tapped: offers as many seats near it as wanted; of an own seat, its booking. */
  chooseTaken(seat) {
    const text = this.l10n.t("not_free", { seat: this.nameOf(seat), state: this.stateName(seat) });
    if (this.own.has(seat)) return void this.notify(text, [], "good", { own: this.own.get(seat) });
    if (!this.data.open || this.isHolding) return;
    const like = Array.from({ length: this.isOneByOne ? 1 : this.quantity }, () => seat);
    const instead = alternatives(this.layout, this.live.states, like);
    this.notify(instead.length ? `${text} ${this.l10n.t("instead")}` : text, instead);
  }

  // Holding

  async best(form) {
    this.bestKey = form.toString() === this.bestForm ? this.bestKey : newKey();
    this.bestForm = form.toString();
    form.set("key", this.bestKey);
    if (await this.send(form)) this.bestForm = null;
  }

  async hold() {
    // What was shown is what is agreed to: the server asks again when it has become another price.
    const form = new URLSearchParams({ key: this.key, expected_total_minor: this.total });
    if (this.area) {
      form.set("section", this.area.part.name);
      form.set("quantity", this.area.count);
    } else for (const seat of this.seats) form.append("seats", labelOf(this.layout, seat));
    await this.send(form);
  }

  /** Whether there was an answer; where there was none, the same key is sent with the next try. */
  async send(form) {
    if (this.isHolding) return false;
    this.isHolding = true;
    this.shown();
    try {
      const answer = await sent(this.data.hold, form);
      if (answer.go) {
        this.seats = [];
        this.area = null;
        location.assign(answer.go);
        return true; // still holding: nothing else is sent while the next page loads
      }
      this.isHolding = false;
      this.refused(answer);
      this.awaitEcho();
      return true;
    } catch {
      this.isHolding = false;
      this.notify(this.l10n.t("failed"), [], "bad");
      return false;
    }
  }

  refused(problem) {
    const known = (label) => this.byLabel(label);
    if (problem.code === "seats_taken" && this.seats.length) {
      const groups = (problem.alternatives ?? []).map((group) => group.map(known));
      this.loseSeats(this.seats, problem.taken.map(known), groups);
    } else if (problem.better) {
      const better = problem.better.map(known);
      this.isRefused = true;
      this.notify(this.l10n.t("orphan", { seats: this.labels(better) }), [better]);
    } else if (problem.code === "price_changed") {
      this.reprice(problem);
    } else if (problem.code === "not_admitted" || problem.code?.startsWith("queue_token")) {
      location.assign(this.data.queue); // the turn is over: the page of the queue says so
    } else {
      this.key = newKey();
      this.notify(this.refusalWords(problem), [], "bad");
    }
  }

  /** Other prices than were shown: shown now, and the same choice may be held at them. */
  reprice({ seats, total_minor: now, expected_total_minor: was }) {
    for (const { label, price_minor } of seats) {
      this.data.prices[this.layout.category[this.byLabel(label)]] = price_minor;
    }
    this.key = newKey();
    const parts = { price: this.l10n.price(now), was: this.l10n.price(was) };
    this.repriced();
    this.notify(this.l10n.t("no_price_changed", parts), [], "warn");
  }

  refusalWords({ code, detail, limit }) {
    const name = `no_${code}`;
    return this.l10n.has(name) ? this.l10n.t(name, { limit }) : detail;
  }

  byLabel(label) {
    this.names ??= new Map();
    if (!this.names.size) {
      for (let seat = 0; seat < this.layout.count; seat++) this.names.set(labelOf(this.layout, seat), seat);
    }
    return this.names.get(label);
  }
}

/** The form, as the page would send it. Once more when nothing came back: the key makes it one hold. */
async function sent(url, form) {
  const ask = { method: "POST", body: form, headers: { Accept: "application/json" } };
  let answer;
  try {
    answer = await fetch(url, ask);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    answer = await fetch(url, ask);
  }
  const found = await answer.json();
  if (found.code !== "proof_needed" || form.has("proof")) return found;
  const { solve } = await import("./proof.js");
  form.set("proof", await solve(found));
  return sent(url, form);
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(15));
  return btoa(String.fromCharCode(...bytes)).replaceAll("/", "_").replaceAll("+", "-");
}
