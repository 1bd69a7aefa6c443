// Plays a sale: the data is in the page, or at the address that the page names.

import { Curve } from "./curve.js";
import { SeatMapView } from "./map.js";
import { BLOCKED, BOOKED, FREE, HELD, Tape, unpack } from "./tape.js";

const MINUTE_MS = 60_000;
const PERIODS_MS = { minutes: 10 * MINUTE_MS, hour: 60 * MINUTE_MS, day: 1440 * MINUTE_MS };
const MOST = 0.8; // of the sold seats: a period that has them is shown first
const HEAT_SHARE = 0.99;
const SCRUB_STEPS = 1000;
const CALM_STEP_MS = 1000; // with reduced motion the picture changes once per second
const KEY_SHARE = 0.02; // of the period, per arrow key
const BOUND_KEYS = "input, select";

class Player {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    const events = unpack(data.events);
    this.tape = new Tape(events, data.seats);
    this.view = new SeatMapView(this.find("map"), data, unpack(data.points));
    this.curve = new Curve(this.find("curve"), events, data.seats);
    this.texts = JSON.parse(root.dataset.texts);
    this.locale = document.documentElement.lang || "en";
    this.numbers = new Intl.NumberFormat(this.locale);
    this.isCalm = matchMedia("(prefers-reduced-motion: reduce)");
    this.isPlaying = false;
    this.atMs = data.length_ms;
    this.measureHeat();
    this.offerPeriods();
    this.listen();
    root.hidden = false;
    this.resize();
  }

  find(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  /** The scale of the heat map is that of the whole sale, so that a colour means the same throughout.
   * It ends where all but one seat in a hundred are: a single favourite would leave the others pale. */
  measureHeat() {
    this.tape.seek(this.data.length_ms);
    this.soldAtEnd = this.tape.counts[BOOKED];
    const wanted = this.tape.heat.filter((times) => times > 0).sort();
    this.view.heatMax = wanted.length ? wanted[Math.ceil((wanted.length - 1) * HEAT_SHARE)] : 1;
    this.find("heat-most").textContent = this.say("heat_most", { n: this.numbers.format(this.view.heatMax) });
  }

  offerPeriods() {
    const select = this.find("period");
    for (const option of [...select.options]) {
      const length = PERIODS_MS[option.value];
      if (length && length >= this.data.length_ms) option.remove();
    }
    const shorter = [...select.options].find((option) => {
      if (!PERIODS_MS[option.value]) return false;
      this.tape.seek(PERIODS_MS[option.value]);
      return this.soldAtEnd && this.tape.counts[BOOKED] >= MOST * this.soldAtEnd;
    });
    select.value = shorter ? shorter.value : "all";
    select.closest("label").hidden = select.options.length < 2;
    this.choosePeriod();
  }

  choosePeriod() {
    this.endMs = Math.max(1, PERIODS_MS[this.find("period").value] ?? this.data.length_ms);
    this.curve.measure(this.endMs);
    const withSeconds = this.endMs < PERIODS_MS.day;
    const clock = { hour: "2-digit", minute: "2-digit", timeZone: this.data.timezone };
    this.clock = new Intl.DateTimeFormat(this.locale, withSeconds
      ? { ...clock, second: "2-digit" }
      : { ...clock, weekday: "short", day: "numeric", month: "short" });
    this.atMs = Math.min(this.atMs, this.endMs);
    this.find("from").textContent = this.timeAt(0);
    this.find("to").textContent = this.timeAt(this.endMs);
  }

  timeAt(ms) {
    return this.clock.format(new Date(this.data.began_ms + ms));
  }

  listen() {
    this.find("play").addEventListener("click", () => this.toggle());
    this.find("scrub").addEventListener("input", (event) => {
      this.pause();
      this.show((event.target.value / SCRUB_STEPS) * this.endMs);
    });
    this.find("period").addEventListener("change", () => {
      this.choosePeriod();
      this.show(this.endMs);
    });
    for (const choice of this.root.querySelectorAll("[name=replay-look]")) {
      choice.addEventListener("change", () => this.chooseLook(choice.value));
    }
    this.root.addEventListener("keydown", (event) => this.key(event));
    addEventListener("resize", () => this.resize());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
  }

  /** Where a control has the focus, its own keys come first. */
  key(event) {
    const isElsewhere = event.target.closest(BOUND_KEYS) || event.ctrlKey || event.metaKey || event.altKey;
    if (isElsewhere) return;
    const step = KEY_SHARE * this.endMs;
    const moves = { ArrowRight: this.atMs + step, ArrowLeft: this.atMs - step, Home: 0, End: this.endMs };
    if (event.key in moves) {
      this.pause();
      this.show(moves[event.key]);
    } else if ((event.key === " " && !event.target.closest("button")) || event.key === "k") this.toggle();
    else return;
    event.preventDefault();
  }

  chooseLook(look) {
    this.view.byHeat = look === "heat";
    this.find("legend-seats").hidden = this.view.byHeat;
    this.find("legend-heat").hidden = !this.view.byHeat;
    this.tape.isNew = true;
    this.draw();
  }

  toggle() {
    if (this.isPlaying) this.pause();
    else this.play();
  }

  play() {
    if (this.atMs >= this.endMs) this.show(0);
    this.isPlaying = true;
    this.label();
    this.begunAt = performance.now();
    this.begunMs = this.atMs;
    requestAnimationFrame((now) => this.frame(now));
  }

  pause() {
    this.isPlaying = false;
    this.label();
  }

  label() {
    const button = this.find("play");
    button.textContent = this.say(this.isPlaying ? "pause" : "play");
    button.dataset.state = this.isPlaying ? "playing" : "paused";
  }

  frame(now) {
    if (!this.isPlaying) return;
    const choice = this.find("speed").value;
    if (choice !== this.speed) { // changed while it plays: from here on
      this.speed = choice;
      this.begunAt = now;
      this.begunMs = this.atMs;
    }
    const rate = choice === "real" ? 1 : this.endMs / (Number(choice) * 1000);
    const passed = now - this.begunAt;
    const shown = this.isCalm.matches ? Math.floor(passed / CALM_STEP_MS) * CALM_STEP_MS : passed;
    const at = Math.min(this.endMs, this.begunMs + shown * rate);
    if (at !== this.atMs) this.show(at);
    if (at >= this.endMs) this.pause();
    else requestAnimationFrame((next) => this.frame(next));
  }

  show(ms) {
    this.atMs = Math.min(Math.max(ms, 0), this.endMs);
    this.draw();
  }

  resize() {
    this.view.resize();
    this.curve.resize();
    this.tape.isNew = true;
    this.draw();
  }

  draw() {
    this.tape.seek(this.atMs);
    this.view.draw(this.tape);
    this.curve.draw(this.atMs);
    const { counts } = this.tape;
    const figures = {
      free: counts[FREE], held: counts[HELD], booked: counts[BOOKED], blocked: counts[BLOCKED],
      refused: this.tape.refused, waiting: this.tape.waiting, inside: this.tape.inside,
    };
    for (const [name, value] of Object.entries(figures)) {
      const place = this.find(`count-${name}`);
      if (place) place.textContent = this.numbers.format(value);
    }
    const time = this.timeAt(this.atMs);
    this.find("time").textContent = time;
    const scrub = this.find("scrub");
    scrub.value = Math.round((this.atMs / this.endMs) * SCRUB_STEPS);
    const [sold, held] = [BOOKED, HELD].map((state) => this.numbers.format(counts[state]));
    scrub.setAttribute("aria-valuetext", this.say("moment", { time, sold, held }));
  }

  say(name, values = {}) {
    return this.texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
  }
}

async function load(root) {
  const inside = document.querySelector("#replay-data");
  if (inside) return JSON.parse(inside.textContent);
  const answer = await fetch(root.dataset.source);
  if (!answer.ok) throw new Error(`replay: ${answer.status}`);
  return answer.json();
}

async function begin(root) {
  const part = (name) => document.querySelector(`[data-part=${name}]`);
  try {
    root.player = new Player(root, await load(root));
  } catch (error) {
    part("failed").hidden = false;
    throw error;
  } finally {
    part("loading").hidden = true;
  }
}

for (const root of document.querySelectorAll("[data-replay]")) begin(root);
