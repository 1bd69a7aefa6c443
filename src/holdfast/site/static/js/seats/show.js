// The page of a show: connects the map, the grid and the panel. Without this file the page's forms work.

import { Availability } from "./availability.js";
import { Gesture } from "./gesture.js";
import { middle, outlined, partAt, partNear, seated } from "./layout.js";
import { Look } from "./look.js";
import { Live } from "./states.js";
import { Localiser } from "./localiser.js";

const SEATS_PX = 9; // between seats: from here on single seats are looked at, and their section and rows are shown
const AGAIN_MS = 3000;
const QUANTITY_KEY = "holdfast.quantity";

const isCoarse = matchMedia("(pointer: coarse)");

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("show-data").textContent);
const l10n = new Localiser(data);

let layout, live, painter, gesture, grid, panel, selection, look, minimap, availability, standing, tip, edges;
let linesOf, tap, leastPitch, bookings = [];
let part = null; // of the list beside the map
let here = null, goal = null, settledAt = null; // in the middle of the map, once seats are close; where a glide leads

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
  fitMap();
  gesture = new Gesture(element, roomy(layout.bounds), painting, { tapped, hovered, settled, pitch: layout.pitch });
  const seat = async () => {
    await opening;
    seated(layout, sent);
    availability = new Availability(layout, live, data.prices);
    availability.count();
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
  const [{ Selection }, { Grid }, { Minimap }, { SelectionPanel }, { Standing }, { Edges }, { Tip }, summary, taps] =
    await patiently(() => Promise.all([
      import("./selection.js"), import("./grid.js"), import("./minimap.js"), import("./selection-panel.js"),
      import("./standing.js"), import("./edges.js"), import("./tip.js"), import("./summary.js"), import("./tap.js"),
      import("./choose.js"),
    ]));
  ({ linesOf } = summary);
  ({ tap, leastPitch } = taps);
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
  standing = new Standing(layout, l10n, { added: (area) => selection.choosePart(area, false), counted: setQuantity });
  edges = new Edges(byId("edges"), layout);
  tip = new Tip(byId("tip"), gesture, selection, (each) => grid.left(each));
  const fitting = new ResizeObserver(() => requestAnimationFrame(fitMap));
  for (const each of [document.body, document.querySelector(".side")]) if (each) fitting.observe(each);
  live.follow();
  listen();
  shown();
  showOwn();
  gesture.settle();
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
  const room = Math.max((right - left) * 0.02, (bottom - top) * 0.02, layout.pitch);
  return [left - room, top - room, right + room, bottom + room];
};

/** On a wide screen the map and the choice end above the fold, whatever is above them: seats.css. */
function fitMap() {
  const map = byId("map"), side = document.querySelector(".side");
  const above = map.getBoundingClientRect().top, below = side?.getBoundingClientRect().bottom;
  map.style.setProperty("--above", `${Math.round(above + scrollY)}px`);
  if (side) byId("selection").style.setProperty("--side-end", `${Math.round(below + scrollY)}px`);
}

/** The painter, with everything that follows it. */
const painting = {
  move(view) {
    painter.move(view);
    edges?.move(view);
    frame(view);
  },
  settle(view) {
    painter.focus = here = whereIs(view);
    painter.settle(view);
    showWhere(view);
    frame(view);
  },
};

function frame(view) {
  minimap?.show(view, gesture.width, gesture.height, gesture.isClose);
}

/** The part that is looked at: the one chosen from a list until the view is moved, else the one in the middle. */
function whereIs(view) {
  const isMoved = !settledAt || ["x", "y", "scale"].some((each) => view[each] !== settledAt[each]);
  const isClose = gesture?.isClose && view.scale * layout.pitch >= SEATS_PX;
  const found = goal ?? (isMoved ? partNear(layout, view.x, view.y) : here);
  settledAt = view;
  goal = null;
  return isClose ? found : null;
}

/** Which section, which rows: seats that are close look alike everywhere. */
function showWhere(view) {
  if (!edges) return;
  if (here) edges.show(view, here.runs, gesture.width, gesture.height);
  else edges.clear();
  const chip = byId("here");
  chip.hidden = !here || layout.parts.length < 2;
  if (here) chip.textContent = inPart(here);
}

function inPart(each) {
  return l10n.t("in_part", { part: l10n.partName(each), left: grid.left(each) });
}

// What happens

function changed(seats) {
  const began = performance.now();
  availability.recount(seats);
  painter.paint(seats);
  grid.paint(seats);
  selection.follow(seats);
  if (seats.some((seat) => selection.own.has(seat))) loadMine();
  labelParts();
  performance.measure("seats:change", { start: began, end: performance.now(), detail: seats.length });
}

function trouble(is) {
  const chip = byId("offline");
  chip.textContent = l10n.t("offline", { time: l10n.time(live.seenAt) });
  chip.hidden = !is;
  announce(is ? chip.textContent : l10n.t("online"));
}

function tapped(at) {
  return Boolean(selection) && tap(at, { layout, live, gesture, selection });
}

function hovered(at) {
  tip?.show(at);
}

function settled(view) {
  if (!panel) return;
  const shownPart = here ?? (gesture.isClose ? partAt(layout, view.x, view.y) : null);
  if (shownPart && shownPart !== part) showPart(shownPart);
  byId("part").value = shownPart ? shownPart.index : "";
  const isFar = view.scale * layout.pitch < leastPitch(isCoarse.matches);
  panel.hint.textContent = l10n.t(!layout.runs.length ? "hint_standing" : isFar ? "hint_far" : "hint_near");
}

function showPart(each) {
  part = each;
  if (byId("rows").open) grid?.show(each);
  standing.show(part, (area) => grid.left(area));
}

function shown() {
  const { area, notice } = selection, count = area?.count ?? selection.seats.length;
  panel.show({
    lines: linesOf(selection), total: selection.total,
    line: l10n.t(area ? "sum_places" : "sum", { count, price: l10n.price(selection.total) }),
    button: l10n.t(area ? "hold_places" : "hold", { count }),
  });
  panel.setNotice(notice?.text ?? "", actionsOf(notice ?? {}), notice?.sort);
  panel.setButton({ isAllowed: !selection.isRefused, isBusy: selection.isHolding });
  // One button is the next step: the one of the choice, once there is one.
  const others = byId("best") ? "[data-best]" : "[data-add]";
  for (const other of document.querySelectorAll(others)) other.classList.toggle("quiet", count > 0);
  document.querySelector(".choose").classList.toggle("has-choice", count > 0);
  painter.choose(selection.seats, area?.part);
  grid.paint(new Set([...(shown.last ?? []), ...selection.seats]));
  shown.last = selection.seats;
}

/** What may be done about a notice: other seats, those that are left, the booking it is about. */
function actionsOf({ groups = [], rest = [], own, isLoud }) {
  const actions = groups.map((group, place) => ({
    label: l10n.t("take", { seats: selection.labels(group) }), act: () => take(group), isLoud: isLoud && place === 0,
  }));
  if (rest.length) actions.push({ label: l10n.t("keep", { seats: selection.labels(rest) }), act: () => take(rest) });
  if (own) {
    const label = l10n.t(own.state === "has" ? "mine_tickets" : "mine_go");
    actions.push({ label, href: `/bookings/${own.booking}`, isLoud: own.state !== "has" });
  }
  return actions;
}

/** Prices have moved since the page was made: what it says of them moves too. */
function repriced() {
  for (const band of document.querySelectorAll(".band")) {
    band.querySelector("strong").textContent = l10n.price(data.prices[band.dataset.band]);
    band.querySelector(".band-soon")?.remove();
  }
  availability.sum();
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
      if (option.value !== "") option.textContent = inPart(layout.parts[option.value]);
    }
    if (here) byId("here").textContent = inPart(here);
    standing.show(part, (area) => grid.left(area));
    availability.show(l10n, announce);
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
    goTo(layout.parts[target.value]);
    announce(inPart(layout.parts[target.value]));
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

/** To a part of the hall; a standing area may be a thin bow, whose middle is not that of its box. */
function goTo(each) {
  const [x, y] = middle(each.outline);
  goal = each;
  gesture.show(each.box, { at: each.isArea ? { x, y } : null });
  showPart(each);
}

/** How many tickets: for a tap on the map, the best seats, and standing areas alike. */
function setQuantity(quantity) {
  const form = byId("best"), radio = form?.querySelector(`[name=quantity][value="${quantity}"]`);
  if (radio) radio.checked = true;
  localStorage.setItem(QUANTITY_KEY, quantity);
  standing.setCount(quantity);
  const best = form?.querySelector("[data-best]");
  if (best) best.textContent = l10n.t("best", { count: quantity });
  selection.setQuantity(quantity);
}

function listenToForm() {
  const form = byId("best"), stored = Number(localStorage.getItem(QUANTITY_KEY));
  setQuantity(stored >= 1 && stored <= data.most ? stored : Math.min(2, data.most));
  form?.addEventListener("change", ({ target }) => {
    if (target.name === "quantity") setQuantity(Number(target.value));
    if (target.id === "one-by-one") selection.isOneByOne = target.checked;
    if (target.name === "section" && target.value) goTo(layout.parts.find(({ name }) => name === target.value));
  });
  form?.addEventListener("submit", (event) => {
    event.preventDefault();
    event.stopPropagation(); // base.js must not mark it as sent: it may be sent again
    selection.best(new URLSearchParams(new FormData(form)));
  });
}

async function loadMine() {
  const { showMine } = await import("./beside.js");
  bookings = await showMine(data, l10n);
  if (selection) showOwn();
}

/** Seats of the one who looks, on the map and in the list. */
function showOwn() {
  const own = bookings.flatMap(({ booking, state, seats }) =>
    seats.map((label) => [selection.byLabel(label), { booking, state }]));
  selection.own = new Map(own);
  painter.setOwn([...selection.own.keys()]);
  grid.paint(grid.cells.keys());
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
