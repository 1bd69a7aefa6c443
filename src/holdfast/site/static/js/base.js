// What every page has. Everything here makes a page quicker or quieter; nothing here is needed to use it.

// A form that was sent is not sent twice by an impatient second click. The server would not mind.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.sent === "yes") {
    event.preventDefault();
    return;
  }
  if (form.method === "post") {
    form.dataset.sent = "yes";
    form.querySelector("button:not([type=button])")?.setAttribute("aria-busy", "true");
  }
});
// Back from the browser's memory of the page: it may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
  }
});

// Adds the reader's local time to times of venues in other zones.
// Later: formatting the first time is slow, and pages have more urgent work.
const LATER_MS = 1000;
for (const time of document.querySelectorAll("time[data-zone]")) setTimeout(() => addLocalTime(time), LATER_MS);

function addLocalTime(time) {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const at = new Date(time.dateTime);
  const asRead = (timeZone) => at.toLocaleString(document.documentElement.lang, { timeZone });
  if (own && asRead(own) !== asRead(time.dataset.zone)) {
    const here = at.toLocaleString(document.documentElement.lang, {
      weekday: "short", hour: "numeric", minute: "2-digit", timeZoneName: "short",
    });
    time.title = here;
    time.after(Object.assign(document.createElement("span"), { className: "own-time", textContent: here }));
  }
}

// Pages that all readers share do not know who reads them: the name comes from a cookie that proves nothing.
const who = document.querySelector("[data-who]");
const name = document.cookie.match(/(?:^|; *)holdfast_name=([^;]+)/)?.[1];
if (who && name) {
  const text = decodeURIComponent(name);
  who.querySelector(".who-name").textContent = text.trim().split(/\s+/)[0];
  who.title = who.dataset.who.replace("#", text);
}
