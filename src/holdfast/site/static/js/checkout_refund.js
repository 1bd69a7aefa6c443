// The refund page: every change of a tick asks for a new quote. The red button is that of a quote, and can be
// pressed only while the quote is for what is ticked.

import { sendByFetch, showAlert } from "./checkout_send.js";

const form = document.getElementById("refund");
const quote = document.getElementById("quote");
const ticks = [...form.querySelectorAll("input[type=checkbox]")];
let latest = 0;

sendByFetch(form);

/** With scripts the review is not needed: the quote follows the ticks. */
function allow(isAllowed) {
  const button = quote.querySelector("[data-refund]");
  quote.querySelector("[data-review]")?.remove();
  quote.setAttribute("aria-busy", String(!isAllowed));
  if (!button) return;
  button.hidden = false;
  button.disabled = !isAllowed;
}

async function requote() {
  const mine = ++latest;
  allow(false);
  const query = new URLSearchParams([["step", "choose"]]);
  for (const tick of ticks) if (tick.checked) query.append("seats", tick.value);
  let fresh = null;
  try {
    const answer = await fetch(`${form.action}?${query}`, { headers: { Accept: "text/html" }, cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    fresh = page.getElementById("quote");
  } catch {
    if (mine === latest) showAlert(form, quote, form.dataset.send);
    return;
  }
  if (mine !== latest) return;
  if (!fresh) return location.reload(); // refunded in another tab, or signed out
  showAlert(form, quote, "");
  quote.replaceChildren(...fresh.childNodes);
  allow(true);
}

if (ticks.length) {
  allow(true);
  form.addEventListener("change", requote);
  window.addEventListener("online", requote);
  // A browser may restore ticks of an earlier visit.
  window.addEventListener("pageshow", (event) => event.persisted && requote());
}
