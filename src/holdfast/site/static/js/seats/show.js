// The page of a show: connects the map, the grid and the panel. Without this file the page's forms work.

import { Gesture } from "./gesture.js";
import { nearestSeat, outlined, partAt, seated } from "./layout.js";
import { Look } from "./look.js";
import { FREE, Live } from "./states.js";
import { Localiser } from "./localiser.js";

const TOUCH_PX = 24; // between seats: a finger cannot choose below that
const MOUSE_PX = 10;
const REACH_PX = 22; // how far from a seat a tap may be; or a seat further, where seats are wider apart
const CLOSE_PX = 34;
const AGAIN_MS = 3000;
const QUANTITY_KEY = "holdfast.quantity";

const isCoarse = matchMedia("(pointer: coarse)");

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("show-data").textContent);
const l10n = new Localiser(data);

let layout, live, painter, gesture, grid, panel, selection, look, minimap, part = null;

async function begin() {
  const element = byId("map");
  if (!element) return;
  if (byId("list")) byId("list").hidden = true;
  live = new Live(data, { changed, trouble, grown: () => location.reload() });
  const isSmall = data.seats <= data.svgMax, opening = patiently(() => live.open());
  const [sent, { SvgPainter, CanvasPainter }] = await patiently(() => Promise.all([
    fetch(data.layout).then((answer) => answer.json()),
    isSmall ? import("./paint-svg.js") : import("./paint-canvas.js"),
  ]));
  layout = outlined(sent);
  look = new Look(layout, () => {
    painter.forgetBitmaps?.();
    painter.redraw();
    minimap?.draw();
  });
  gesture = new Gesture(element, roomy(layout.bounds), painting, { tapped, hovered, settled, pitch: layout.pitch });
  const seat = async () => {
    await opening;
    seated(layout, sent);
    count();
  };
  const isFar = !isSmall && data.parts && CanvasPainter.isFar(gesture.view.scale * layout.pitch);
  if (isFar) layout.parts.forEach((each, index) => Object.assign(each, data.parts[index]));
  else await seat();
  painter = new (SvgPainter ?? CanvasPainter)(element, layout, live.states, look, l10n);
  gesture.settle();
  if (!isFar) painter.countAreas();
  element.querySelector(".map-wait").remove();
  performance.mark("seats:painted");
  await onScreen();
  if (isFar) {
    await seat();
    painter.states = live.states;
    gesture.settle();
  }
  await furnish();
  document.documentElement.dataset.seats = "ready";
}

/** What is painted is seen before anything else is done; a hidden page does not wait. */
function onScreen() {
  return new Promise((done) => {
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
    setTimeout(done, 500);
  });
}

/** What is not needed to see the map: it comes when the map is there. */
async function furnish() {
  const [{ Selection }, { Grid }, { Minimap }, { SelectionPanel }] = await patiently(() => Promise.all([
    import("./selection.js"), import("./grid.js"), import("./minimap.js"), import("./selection-panel.js"), import("./choose.js"),
  ]));
  panel = new SelectionPanel(byId("selection"), l10n, { held: () => selection.hold() });
  minimap = new Minimap(byId("minimap"), layout, look, {
    went: (at) => {
      gesture.set({ ...gesture.view, ...at });
      gesture.settleSoon();
    },
  });
  selection = new Selection(data, layout, live, l10n, { announce, shown, repriced });
  grid = new Grid(byId("grid"), layout, l10n, {
    onSeat: (seat) => selection.choose(seat), onPart: (area) => selection.choosePart(area),
    describe: (seat) => selection.describe(seat), stateOf: (seat) => live.states[seat], chosen: () => selection.chosen,
  });
  live.follow();
  listen();
  shown();
  settled(gesture.view);
}

/** Until it works: the box office may be away for a moment, and the forms of the page do not need the map. */
async function patiently(ask) {
  for (;;) {
    try {
      return await ask();
    } catch {
      const wait = byId("map").querySelector(".map-wait");
      if (wait) wait.textContent = l10n.t("away");
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

const roomy = ([left, top, right, bottom]) => {
  const room = Math.max(right - left, bottom - top) * 0.02;
  return [left - room, top - room, right + room, bottom + room];
};

/** The painter, with the minimap's frame following it. */
const painting = {
  move(view) {
    painter.move(view);
    frame(view);
  },
  settle(view) {
    painter.settle(view);
    frame(view);
  },
};

function frame(view) {
  minimap?.show(view, gesture.width, gesture.height, gesture.isClose);
}

// Counting what is left

function count() {
  for (const each of layout.parts) {
    Object.assign(each, { free: 0, total: 0, byCategory: new Uint32Array(layout.categories.length) });
  }
  for (let seat = 0; seat < layout.count; seat++) {
    const each = layout.parts[layout.partOf[seat]];
    each.total += 1;
    if (live.states[seat] === FREE) each.byCategory[layout.category[seat]] += 1;
  }
  live.known = live.states.slice();
  for (const each of layout.parts) sum(each);
}

function sum(each) {
  const free = [...each.byCategory.keys()].filter((category) => each.byCategory[category]);
  each.free = free.reduce((total, category) => total + each.byCategory[category], 0);
  each.fromMinor = Math.min(...free.map((category) => data.prices[category]));
}

function recount(seats) {
  const touched = new Set();
  for (const seat of seats) {
    const each = layout.parts[layout.partOf[seat]];
    const was = live.known[seat] === FREE, is = live.states[seat] === FREE;
    live.known[seat] = live.states[seat];
    if (was !== is) each.byCategory[layout.category[seat]] += is ? 1 : -1;
    touched.add(each);
  }
  for (const each of touched) sum(each);
}

// What happens

function changed(seats) {
  const began = performance.now();
  recount(seats);
  painter.paint(seats);
  grid.paint(seats);
  selection.follow(seats);
  labelParts();
  performance.measure("seats:change", { start: began, end: performance.now(), detail: seats.length });
}

function trouble(is) {
  announce(l10n.t(is ? "offline" : "online"));
  byId("map").classList.toggle("is-offline", is);
}

function tapped({ x, y, isTouch }) {
  if (!selection) return false;
  const pitchPx = gesture.view.scale * layout.pitch, here = partAt(layout, x, y);
  if (here?.isArea) {
    selection.choosePart(here);
    return true;
  }
  if (pitchPx < (isTouch ? TOUCH_PX : MOUSE_PX)) return comeCloser(here, { x, y }, isTouch);
  const reach = Math.max(REACH_PX / gesture.view.scale, layout.pitch), mine = selection.chosen;
  const seat = nearestSeat(layout, x, y, reach, (each) => live.states[each] === FREE || mine.has(each));
  const exact = nearestSeat(layout, x, y, layout.pitch * 0.6, () => true);
  // A tap on a taken seat is answered with a notice; a tap between seats selects a free one.
  if (exact >= 0 && exact !== seat && live.states[exact] !== FREE && !mine.has(exact)) {
    selection.chooseTaken(exact);
    return true;
  }
  if (seat >= 0) selection.choose(seat);
  return seat >= 0;
}

/** First to the whole part, then to its seats around the tap. */
function comeCloser(here, around, isTouch) {
  const near = nearestSeat(layout, around.x, around.y, TOUCH_PX / gesture.view.scale, () => true);
  const each = here ?? layout.parts[layout.partOf[near]];
  if (!each) return false;
  const isThere = gesture.view.scale > gesture.fitted(each.box, 0.9).scale * 0.7;
  gesture.show(each.box, { pitchPx: isThere ? (isTouch ? CLOSE_PX : TOUCH_PX) : 0, around });
  return true;
}

function hovered(at) {
  const tip = byId("tip");
  const text = at && tipAt(gesture.world(at));
  tip.hidden = !text;
  if (!text) return;
  tip.replaceChildren(...text.filter(Boolean).map((line, place) =>
    Object.assign(document.createElement(place ? "span" : "strong"), { textContent: line })));
  const left = Math.min(gesture.width - tip.offsetWidth - 8, Math.max(8, at.x - tip.offsetWidth / 2));
  const top = at.y - tip.offsetHeight - 16;
  tip.style.transform = `translate(${left}px, ${top < 4 ? at.y + 22 : top}px)`;
}

function tipAt({ x, y }) {
  if (!selection) return null;
  const seat = nearestSeat(layout, x, y, layout.pitch * 0.7, () => true);
  const isNear = gesture.view.scale * layout.pitch >= 5;
  if (seat >= 0 && isNear) {
    const price = `${selection.categoryOf(seat)} · ${l10n.price(selection.priceOf(seat))}`;
    return [selection.nameOf(seat), price, selection.noteOf(seat), selection.stateName(seat)];
  }
  const here = partAt(layout, x, y);
  if (!here || (isNear && !here.isArea)) return null;
  const from = here.free ? l10n.t("from", { price: l10n.price(here.fromMinor) }) : "";
  return [here.name, from, grid.left(here)];
}

function settled(view) {
  if (!panel) return;
  const here = gesture.isClose ? partAt(layout, view.x, view.y) : null;
  if (here && here !== part) showPart(here);
  if (!gesture.isClose) byId("part").value = "";
  const isFar = view.scale * layout.pitch < (isCoarse.matches ? TOUCH_PX : MOUSE_PX) && layout.runs.length;
  panel.hint.textContent = l10n.t(isFar ? "hint_far" : "hint_near");
}

function showPart(each) {
  part = each;
  byId("part").value = each.index;
  if (byId("rows").open) grid?.show(each);
}

function shown() {
  const seats = selection.seats.map((seat) => ({
    name: selection.nameOf(seat), note: [selection.categoryOf(seat), selection.noteOf(seat)].filter(Boolean).join(" · "),
    price: l10n.price(selection.priceOf(seat)), colour: layout.categories[layout.category[seat]].colour,
    remove: () => selection.choose(seat),
  }));
  const { area } = selection;
  const places = area && [{
    name: l10n.t("place", { count: area.count, area: area.part.name }), note: "",
    price: l10n.price(selection.total), colour: layout.categories[area.part.category].colour,
    remove: () => selection.set([]),
  }];
  const number = area?.count ?? selection.seats.length;
  panel.show({
    items: places ?? seats,
    total: selection.total,
    button: l10n.t(area ? "hold_places" : "hold", { count: number }),
  });
  const { notice } = selection;
  panel.setNotice(notice?.text ?? "", (notice?.groups ?? []).map((group) => ({
    label: l10n.t("take", { seats: selection.labels(group) }), take: () => take(group),
  })), notice?.sort);
  panel.setButton({ isAllowed: !selection.isRefused, isBusy: selection.isHolding });
  painter.choose(selection.seats, area?.part);
  grid.paint(new Set([...(shown.last ?? []), ...selection.seats]));
  shown.last = selection.seats;
}

/** Prices have moved since the page was made: what it says of them moves too. */
function repriced() {
  for (const band of document.querySelectorAll(".band")) {
    band.querySelector("strong").textContent = l10n.price(data.prices[band.dataset.band]);
    band.querySelector(".band-soon")?.remove();
  }
  for (const each of layout.parts) sum(each);
  grid.paint(grid.cells.keys());
}

function take(group) {
  selection.set(group);
  selection.announceChoice();
  byId("selection").querySelector("[data-hold]").focus();
}

let announcing;
function announce(text) {
  // Emptied first: the same words twice are two pieces of news.
  const live = byId("announce");
  live.textContent = "";
  clearTimeout(announcing);
  announcing = setTimeout(() => (live.textContent = text), 30);
}

let labelling;
function labelParts() {
  labelling ??= setTimeout(() => {
    labelling = null;
    for (const option of byId("part").options) {
      if (option.value === "") continue;
      const each = layout.parts[option.value];
      option.textContent = l10n.t("in_part", { part: each.name, left: grid.left(each) });
    }
  }, 400);
}

// What people do

function listen() {
  labelParts();
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const zoom = (factor) => () => gesture.zoomStep(factor);
    const moves = { in: zoom(1.8), out: zoom(1 / 1.8), fit: () => gesture.fit() };
    button.addEventListener("click", moves[button.dataset.zoom]);
  }
  byId("part").addEventListener("change", ({ target }) => {
    if (target.value === "") return void gesture.fit();
    const each = layout.parts[target.value];
    gesture.show(each.box);
    showPart(each);
    announce(l10n.t("in_part", { part: each.name, left: grid.left(each) }));
  });
  byId("rows").addEventListener("toggle", () => {
    if (byId("rows").open) grid.show(part ?? layout.parts[0]);
  });
  document.querySelector(".skip-map").addEventListener("click", (event) => {
    event.preventDefault();
    byId("rows").open = true;
    grid.show(part ?? layout.parts[0]);
    grid.focus();
  });
  listenToForm();
}

function listenToForm() {
  const form = byId("best");
  if (!form) return;
  const radios = [...form.elements.quantity ?? []], button = form.querySelector("[data-best]");
  const stored = radios.find((radio) => radio.value === localStorage.getItem(QUANTITY_KEY));
  if (stored) stored.checked = true;
  const read = () => {
    const quantity = Number(new FormData(form).get("quantity")) || 1;
    button.textContent = l10n.t("best", { count: quantity });
    selection.setQuantity(quantity);
  };
  form.addEventListener("change", ({ target }) => {
    if (target.name === "quantity") {
      localStorage.setItem(QUANTITY_KEY, target.value);
      read();
    }
    if (target.id === "one-by-one") selection.isOneByOne = target.checked;
    if (target.name === "section" && target.value) {
      const each = layout.parts.find(({ name }) => name === target.value);
      gesture.show(each.box);
      showPart(each);
    }
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation(); // base.js must not mark it as sent: it may be sent again
    selection.best(new URLSearchParams(new FormData(form)));
  });
  read();
}

async function loadMine() {
  const { showMine } = await import("./beside.js");
  await showMine(data, l10n);
}

if (byId("opens")) import("./beside.js").then(({ countDown }) => countDown(byId("opens")));
byId("refused")?.focus();
// The map first; but own reservations are shown even while the map cannot be loaded.
Promise.race([begin(), new Promise((resolve) => setTimeout(resolve, AGAIN_MS))]).then(loadMine);
addEventListener("pageshow", (event) => {
  if (!event.persisted || !selection) return;
  selection.isHolding = false; // back from the next page: choose again
  shown();
  loadMine();
});
