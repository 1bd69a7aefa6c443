// Connects the page with the stream of frames, and the buttons with the server.

import { CityMap } from "./map.js";

const SUMMARY_MS = 15_000; // a screen reader reads it aloud: seldom enough to listen to
const NUDGE = 60; // pixels per arrow key
const byId = (id) => document.getElementById(id);
const city = await (await fetch("/city")).json();
const map = new CityMap(byId("map"), city);
let frame = null;
let summarised = -Infinity;

const seconds = (value) => `${value.toFixed(value < 10 ? 1 : 0)} s`;
const count = (number, one, many) => `${number} ${number === 1 ? one : many}`;

const stream = new EventSource("/live");
stream.onopen = () => { byId("lost").hidden = true; };
stream.onerror = () => { byId("lost").hidden = false; };
stream.onmessage = (message) => {
  frame = JSON.parse(message.data);
  map.show(frame);
  showFigures(frame.figures);
  showPace();
  byId("health").textContent = `Workers: ${frame.health.workers ?? "–"}. Valkey: ${frame.health.valkey ?? "–"}.`;
  byId("feed").replaceChildren(...frame.feed.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  if (performance.now() - summarised > SUMMARY_MS && "waiting" in frame.figures) {
    summarised = performance.now();
    byId("summary").textContent = summary(frame.figures);
  }
  document.documentElement.dataset.live = "yes";
};

function showFigures(figures) {
  if (!("waiting" in figures)) return;
  byId("matches_per_s").textContent = figures.matches_per_s.toFixed(1);
  for (const id of ["match_p50_s", "match_p95_s"]) byId(id).textContent = seconds(figures[id]);
  for (const id of ["waiting", "free", "riding"]) byId(id).textContent = figures[id];
  const isGood = figures.violations === 0;
  byId("verdict").textContent = isGood ? "No driver ever had two offers." : `${figures.violations} violations found!`;
  byId("verdict").className = isGood ? "good" : "bad";
  byId("checked").textContent = `${figures.checked.toLocaleString("en")} changes of state checked.`;
}

function summary(figures) {
  const verdict = figures.violations === 0 ? "no violation" : count(figures.violations, "violation", "violations");
  return `${count(figures.waiting, "rider waits", "riders wait")}. ${figures.free} of ${figures.online} drivers online are free, `
    + `${count(figures.offers, "offer is", "offers are")} open, ${count(figures.riding, "ride is", "rides are")} on the way. `
    + `${figures.matches_per_s.toFixed(1)} matches per second; half of the riders get a driver within `
    + `${seconds(figures.match_p50_s)}, 95 percent within ${seconds(figures.match_p95_s)}. The oracle found ${verdict}.`;
}

function showPace() {
  byId("pause").textContent = frame.paused ? "Continue" : "Pause";
  byId("pause").setAttribute("aria-pressed", frame.paused);
  for (const button of byId("speeds").children) button.setAttribute("aria-pressed", Number(button.value) === frame.speed);
}

const send = (path, body) => fetch(path, {
  method: "POST", headers: { "x-dispatch-button": "1" }, body: body && JSON.stringify(body),
});
const setPace = (change) => send("/pace", change);

for (const speed of city.speeds) {
  const button = Object.assign(document.createElement("button"), { type: "button", value: speed, textContent: `${speed}×` });
  button.setAttribute("aria-label", `Speed ${speed}`);
  button.addEventListener("click", () => setPace({ speed }));
  byId("speeds").append(button);
}
byId("pause").addEventListener("click", () => setPace({ paused: !frame.paused }));
for (const button of document.querySelectorAll("[data-fault]")) {
  button.addEventListener("click", async () => {
    const response = await send(`/faults/${button.dataset.fault}`);
    byId("done").textContent = response.ok ? `Done: ${button.textContent.toLowerCase()}.` : "That did not work.";
  });
}
for (const button of document.querySelectorAll("[data-zoom]")) {
  button.addEventListener("click", () => map.zoomBy(Number(button.dataset.zoom)));
}

const MAP_KEYS = {
  "+": () => map.zoomBy(1.5), "=": () => map.zoomBy(1.5), "-": () => map.zoomBy(1 / 1.5), 0: () => map.zoomBy(0),
  ArrowLeft: () => map.moveBy(NUDGE, 0), ArrowRight: () => map.moveBy(-NUDGE, 0),
  ArrowUp: () => map.moveBy(0, NUDGE), ArrowDown: () => map.moveBy(0, -NUDGE),
};
map.canvas.addEventListener("keydown", (event) => {
  if (!MAP_KEYS[event.key]) return;
  event.preventDefault();
  MAP_KEYS[event.key]();
});
document.addEventListener("keydown", (event) => {
  if (!frame || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.tagName !== "BUTTON") {
    event.preventDefault();
    setPace({ paused: !frame.paused });
  }
  const speed = city.speeds[Number(event.key) - 1];
  if (speed) setPace({ speed });
});

map.canvas.addEventListener("wheel", (event) => {
  if (map.zoom === 1 && event.deltaY > 0) return; // the page scrolls
  event.preventDefault();
  map.zoomBy(event.deltaY < 0 ? 1.15 : 1 / 1.15);
}, { passive: false });
map.canvas.addEventListener("pointerdown", (event) => map.canvas.setPointerCapture(event.pointerId));
map.canvas.addEventListener("pointermove", (event) => {
  if (event.buttons) map.moveBy(event.movementX, event.movementY);
});
