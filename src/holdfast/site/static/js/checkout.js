// The page of a booking: its clock, and whether it still says the truth. Without this file it is the same
// page, with the time instead of the seconds and a reload instead of a look.

import { sendByFetch } from "./checkout_send.js";

const page = document.getElementById("booking");

// Moments of today in the reader's own zone, written as where they live.
const locale = document.documentElement.lang;
for (const time of document.querySelectorAll("time[data-clock]")) {
  const at = new Date(time.dateTime);
  time.textContent = at.toLocaleTimeString(locale, { timeStyle: "short" });
}

if (page) {
  // The server's clock counts: ours may be wrong, so only the difference between the two is taken from it.
  const began = performance.getEntriesByType("navigation")[0]?.responseStart ?? 0;
  const arrived = Date.now() - Math.max(0, performance.now() - began);
  let skew = Number(page.dataset.now) - arrived;
  let ends = Number(page.dataset.ends);
  const whole = Number(page.dataset.whole);
  const state = page.dataset.state;
  const announcer = document.getElementById("announce");
  const left = document.getElementById("left");
  const bar = document.getElementById("left-bar");
  const stub = document.getElementById("stub");

  const leftMs = () => ends - (Date.now() + skew);

  // Announced twice only: a screen reader must not read a clock every second.
  const announcements = [[120_000, page.dataset.twoMinutes], [30_000, page.dataset.halfMinute]];
  const due = announcements.filter(([at]) => leftMs() > at);

  function draw() {
    const ms = Math.max(0, leftMs());
    const seconds = Math.ceil(ms / 1000);
    left.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    bar.value = ms / whole;
    // In a few steps: what one wants to press must not creep away.
    stub.style.setProperty("--torn", String(Math.floor((1 - Math.min(1, ms / whole)) * 6) / 6));
    stub.classList.toggle("is-short", ms < 120_000);
    while (due.length && ms <= due[0][0]) {
      const [, text] = due.shift();
      if (state === "held") announcer.textContent = text;
    }
    if (ms === 0) announcer.textContent = page.dataset.timeIsUp;
    return ms;
  }

  if (left && (state === "held" || state === "paying")) {
    left.hidden = bar.hidden = false;
    draw();
    const ticking = setInterval(() => {
      if (draw() === 0) {
        clearInterval(ticking);
        look();
      }
    }, 1000);
  }

  // Another tab, the gateway or the clock may have moved the booking on: look, and load the page if so.
  let looking = null;
  async function look() {
    if (looking) return;
    looking = fetch(page.dataset.path, { headers: { Accept: "application/json" }, cache: "no-store" });
    try {
      const answer = await looking;
      if (answer.status === 404 || answer.redirected) location.reload();
      if (!answer.ok) return;
      const status = await answer.json();
      if (status.view_version !== page.dataset.viewVersion) {
        if (status.display_state !== state || state !== "held") {
          keepTyped();
          location.replace(page.dataset.path);
        } else {
          location.reload();
        }
        return;
      }
      skew = ends - status.left_ms - Date.now();
    } catch {
      // No network: the seats are held by the server, not by this page. It looks again in a while.
    } finally {
      looking = null;
    }
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && state !== "confirmed") look();
  });
  window.addEventListener("online", look);
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) look();
  });

  let pause = 1500;
  function lookAgain() {
    setTimeout(async () => {
      if (document.visibilityState === "visible") await look();
      pause = Math.min(pause * 1.4, 8000);
      lookAgain();
    }, pause);
  }
  if (state === "paying" || (state === "lapsed" && !page.dataset.viewVersion.includes(".none."))) lookAgain();
  if (state === "held" && leftMs() < 0) look();

  // What was typed survives a lapse and a new hold, in this tab alone.
  const form = document.getElementById("pay");
  const fields = form ? [...form.querySelectorAll("input:not([type=hidden])")] : [];
  function keepTyped() {
    for (const field of fields) sessionStorage.setItem(`typed-${field.name}`, field.value);
  }
  for (const field of fields) {
    if (!field.value) field.value = sessionStorage.getItem(`typed-${field.name}`) ?? "";
    field.addEventListener("change", keepTyped);
  }
  if (form) {
    form.addEventListener("submit", keepTyped);
    sendByFetch(form);
  }
  if (state === "confirmed") for (const name of ["name", "email"]) sessionStorage.removeItem(`typed-${name}`);

  // To what is wrong, or to what must be read first.
  (page.querySelector("[aria-invalid=true]") ?? page.querySelector(".notice.bad"))?.focus();
}
