// The page of a waiting room. It follows one public resource, the same for everybody; only when that says that
// something has changed for this visitor does it ask for their own place, and loads the page again.
// Without this file the page loads itself again, and its forms work.

import { Localiser } from "./seats/localiser.js";

const ANNOUNCE_MS = 45_000; // the place is announced at most this often
const WAIT_S_MIN = 2, TENTH = 10; // people poll ten times during their wait, or as often as the status says
const RELOADS_PER_S = 1000; // everybody sees the draw at once: loading the page is spread
const SPREAD_S_MAX = 60;
const ASK_MS = 3000; // between looks at one's own place, when it should be one's turn
const AGAIN_MS = 10_000;
const BESIDE_STREAM_MS = 15_000; // a stream may have ended without a word
const RELOAD_MS = 500; // the page may come from a process that has not seen the change yet
const VIBRATE_MS = 200;
const SPOKEN_MS = 300; // what is there when a page loads is not announced
const HOUR_S = 3600, MINUTE_S = 60;
const SLACK = 1.3;

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("queue-data").textContent);
const l10n = new Localiser({ ...data, currency: "EUR" });
const title = document.title;
const isQueued = data.position !== null && data.phase === "waiting";

let status = { serving: data.serving, per_minute: data.perMinute, poll_after_s: data.pollAfterS, state: data.state };
let source = null, timer = null, isLeaving = false, isAsking = false;
let announcedAt = performance.now(), announced = "";

// Figures

const ahead = () => Math.max(0, data.front - status.serving);

/** The server's range, moved with the people ahead and with the rate at which they are called. The page of the
 * draw has none: no one was called yet. From then on it is estimated from the rate, as waitingroom/waits.py does. */
function waitRange() {
  if (!data.wait) {
    const seconds = (ahead() / status.per_minute) * MINUTE_S;
    return status.per_minute > 0 ? [seconds / SLACK, seconds * SLACK + 1] : null;
  }
  const [low, high] = data.wait, share = data.ahead ? ahead() / data.ahead : 0;
  const faster = data.perMinute > 0 && status.per_minute > 0 ? status.per_minute / data.perMinute : 1;
  return [(low * share) / faster, (high * share) / faster];
}

function sayWait(range) {
  if (!range) return l10n.t("wait_unknown");
  const [lowS, highS] = range;
  if (highS <= MINUTE_S) return l10n.t("wait_soon");
  const isLong = highS > 2 * HOUR_S, unit = isLong ? HOUR_S : MINUTE_S;
  const low = Math.floor(lowS / unit), high = Math.ceil(highS / unit);
  const parts = { low: l10n.number(low), high: l10n.number(high > low ? high : low + 1) };
  return l10n.t(isLong ? "wait_hours" : "wait", parts);
}

function setText(id, text) {
  const element = byId(id);
  if (element && element.textContent !== text) element.textContent = text;
}

function draw() {
  if (byId("entrants")) setText("entrants", l10n.number(status.joined ?? 0));
  if (byId("count")) {
    const isDrawn = data.phase !== "join";
    const count = isDrawn ? Math.max(0, status.joined - status.serving) : status.joined;
    setText("count", l10n.t(isDrawn ? "waiting" : "joined", { count }));
  }
  if (!isQueued) return;
  const count = ahead(), wait = sayWait(waitRange());
  const words = count ? l10n.t("ahead", { count }) : l10n.t("next");
  setText("ahead", words);
  setText("wait", wait);
  setText("left", l10n.number(status.seats_left));
  byId("way").value = data.position + 1 - count;
  byId("odds").hidden = count < status.seats_left;
  announceSometimes(l10n.t("announce", { place: l10n.number(data.position + 1), ahead: words, wait }));
}

function announceSometimes(text) {
  if (text === announced || performance.now() - announcedAt < ANNOUNCE_MS) return;
  announce(text);
  announced = text;
}

function announce(text) {
  announcedAt = performance.now();
  byId("announce").textContent = text;
}

// News

async function poll() {
  try {
    const answer = await fetch(data.status);
    if (!answer.ok) throw new Error(String(answer.status));
    await follow(await answer.json());
    byId("offline").hidden = true;
  } catch {
    byId("offline").hidden = false;
    plan(AGAIN_MS);
    return;
  }
  plan(pauseMs());
}

/** Sooner near the front; never all at once. */
function pauseMs() {
  if (source?.readyState === EventSource.OPEN) return BESIDE_STREAM_MS;
  const range = isQueued ? waitRange() : null;
  const soon = range ? Math.max(WAIT_S_MIN, range[0] / TENTH) : Infinity;
  return Math.min(status.poll_after_s, soon) * 1000 * (0.8 + 0.4 * Math.random());
}

function plan(ms) {
  clearTimeout(timer);
  timer = setTimeout(poll, ms);
}

async function follow(next) {
  status = next;
  if (next.state !== data.state || next.opening !== data.opening) return void reloadSoon(next);
  draw();
  if (isQueued && data.front < next.serving) await askOwn();
  else if (isQueued && ahead() <= data.near) listen();
}

/** To the page as it is now; at the draw that is everybody. */
function reloadSoon({ joined = 0 }) {
  if (isLeaving) return;
  isLeaving = true;
  const spreadS = Math.min(SPREAD_S_MAX, joined / RELOADS_PER_S);
  setTimeout(() => location.replace(location.pathname), RELOAD_MS + Math.random() * spreadS * 1000);
}

/** Whether it is our turn: others may have been called instead while there was no room inside. */
async function askOwn() {
  if (isAsking || isLeaving) return;
  isAsking = true;
  setTimeout(() => {
    isAsking = false;
    plan(0);
  }, ASK_MS);
  const answer = await fetch(location.pathname, { headers: { Accept: "application/json" }, cache: "no-store" });
  if (!answer.ok) return;
  const own = await answer.json();
  if (own.phase !== data.phase || own.position !== data.position) {
    if (own.phase === "turn") tellTurn();
    reloadSoon({});
  }
}

function tellTurn() {
  document.title = `${l10n.t("title_turn")} · ${title}`;
  announce(l10n.t("turn"));
  if (navigator.userActivation?.hasBeenActive) navigator.vibrate?.(VIBRATE_MS);
}

/** Near the front every change is sent; the others would take connections from them. */
function listen() {
  if (source || !globalThis.EventSource) return;
  source = new EventSource(data.stream);
  source.addEventListener("queue", (event) => follow(JSON.parse(event.data)).catch(() => {}));
  source.addEventListener("error", () => {
    if (source?.readyState === EventSource.CLOSED) source = null; // refused: polling goes on
  });
}

// Clocks

function countDown(element) {
  const skew = Date.now() - Date.parse(element.dataset.now);
  const ends = Date.parse(element.dataset.at), figure = element.querySelector("[role=timer]");
  let isShort = ends - (Date.now() - skew) <= MINUTE_S * 1000;
  element.hidden = false;
  const tick = () => {
    const left = Math.max(0, Math.ceil((ends - (Date.now() - skew)) / 1000));
    const two = (value) => String(value).padStart(2, "0");
    const days = Math.floor(left / 86_400), hours = Math.floor(left / HOUR_S) % 24;
    const minutes = Math.floor(left / MINUTE_S) % 60, seconds = two(left % 60);
    figure.textContent = days || hours ? `${days ? `${days} d ` : ""}${two(hours)}:${two(minutes)}:${seconds}`
      : `${minutes}:${seconds}`;
    if (!isShort && left <= MINUTE_S && ["turn", "inside"].includes(data.phase)) announce(l10n.t("short"));
    isShort = left <= MINUTE_S;
    element.classList.toggle("is-short", isShort);
    if (left) setTimeout(tick, 1000 - (Date.now() % 1000));
    else ended();
  };
  tick();
}

/** The moment has come: of a turn the page knows what is next, of the room its status. */
function ended() {
  if (["turn", "inside"].includes(data.phase)) reloadSoon({});
  else plan(1000 * Math.random());
}

// A guest may have to solve a puzzle first, while very many want to join.

function joinByFetch(form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    event.stopPropagation(); // base.js would mark it as sent
    const button = form.querySelector("button");
    if (button.hasAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    try {
      const found = await sendJoin(form.action, new URLSearchParams());
      if (found.go) return void location.replace(found.go);
    } catch {
      // No answer: the plain form says what is wrong.
    }
    form.submit();
  });
}

async function sendJoin(url, body) {
  const answer = await fetch(url, { method: "POST", body, headers: { Accept: "application/json" } });
  const found = await answer.json();
  if (found.code !== "proof_needed" || body.has("proof")) return found;
  const { solve } = await import("./seats/proof.js");
  body.set("proof", await solve(found));
  return sendJoin(url, body);
}

if (byId("countdown")) countDown(byId("countdown"));
if (byId("join")) joinByFetch(byId("join"));
if (data.phase === "turn") setTimeout(tellTurn, SPOKEN_MS);
byId("problem")?.focus();
if (!["open", "sold_out", "finished", "gone", "inside"].includes(data.phase)) {
  if (isQueued && data.ahead <= data.near) listen();
  plan(pauseMs());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) plan(0);
  });
  addEventListener("online", () => plan(0));
}
document.documentElement.dataset.queue = "ready";
