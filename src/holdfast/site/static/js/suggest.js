// Suggestions while typing, a combobox of the ARIA practices: arrows, Enter, Escape. The form stays a form.
const PAUSE_MS = 120;

for (const input of document.querySelectorAll("input[data-suggest]")) {
  const { suggest, name, count, all, ...kinds } = input.dataset;
  const list = Object.assign(document.createElement("ul"), { id: `${input.id}-list`, className: "suggest" });
  const counter = Object.assign(document.createElement("span"), { className: "unseen" });
  let at = -1, timer = 0, asking = null, shown = "";

  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", name);
  counter.setAttribute("role", "status");
  for (const [key, value] of [["role", "combobox"], ["aria-autocomplete", "list"],
    ["aria-controls", list.id], ["aria-expanded", "false"]]) input.setAttribute(key, value);
  list.hidden = true;
  input.after(list, counter);

  const open = (yes) => {
    list.hidden = !yes;
    input.setAttribute("aria-expanded", String(yes));
    if (!yes) mark(-1);
  };
  const mark = (next) => {
    list.children[at]?.setAttribute("aria-selected", "false");
    at = next;
    const option = list.children[at];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const option = ([path, text, kind], place) => {
    const item = Object.assign(document.createElement("li"), { id: `${list.id}-${place}` });
    const sort = Object.assign(document.createElement("span"), { className: "fine", textContent: kind });
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    item.dataset.path = path;
    item.append(text, " ", sort);
    return item;
  };
  // A day at its venue: formatted as UTC, so that the reader's own zone does not move it.
  const days = new Intl.DateTimeFormat(document.documentElement.lang,
    { weekday: "short", day: "numeric", month: "short", timeZone: "UTC" });
  const event = (one) => `${kinds[one.kind]} · ${days.format(new Date(one.next_date))}`;
  const show = (found, q) => {
    const places = [
      ...found.events.map((one) => [`/events/${one.event_id}`, one.title, event(one)]),
      ...found.venues.map((one) => [`/venues/${one.venue_id}`, one.name, kinds.venue]),
      ...found.cities.map((one) => [`/?city=${one.slug}`, one.name, kinds.city]),
    ];
    const results = option([`/find?${new URLSearchParams({ q })}`, all.replace("#", () => q), ""], places.length);
    results.className = "suggest-all";
    list.replaceChildren(...places.map(option), results);
    at = -1;
    open(true);
    counter.textContent = count.replace("#", places.length);
  };
  const ask = async () => {
    const q = input.value.trim();
    asking?.abort();
    if (!q) { shown = ""; open(false); counter.textContent = ""; return; }
    if (q === shown) { open(true); return; }
    asking = new AbortController();
    try {
      const answer = await fetch(`${suggest}?${new URLSearchParams({ q })}`, { signal: asking.signal });
      if (answer.ok) { shown = q; show(await answer.json(), q); }
    } catch (error) {
      if (error.name !== "AbortError") open(false); // away from the network: the form still works
    }
  };

  input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE_MS); });
  input.addEventListener("keydown", (event) => {
    const last = list.children.length - 1;
    const step = { ArrowDown: at < last ? at + 1 : -1, ArrowUp: at < 0 ? last : at - 1 }[event.key];
    if (event.isComposing) return;
    if (step !== undefined && last >= 0) { event.preventDefault(); open(true); mark(step); }
    else if (event.key === "Enter" && at >= 0) { event.preventDefault(); go(list.children[at]); }
    else if (event.key === "Escape" && !list.hidden) { event.preventDefault(); open(false); }
  });
  const go = (item) => location.assign(item.dataset.path);
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) go(item);
  });
  input.addEventListener("blur", () => open(false));
}
