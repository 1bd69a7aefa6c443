// Sends a form by fetch, so that a lost network costs neither the page nor what was typed. The form has the
// sentence to show then in `data-send`. Whatever else the server says, it says on a page: the form is sent
// again as browsers do. That is safe: every form of this site may arrive twice.

export function sendByFetch(form) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.native || form.dataset.sent || event.submitter?.formMethod === "get") return;
    event.preventDefault();
    send(form, event.submitter);
  });
}

async function send(form, submitter) {
  showAlert(form, submitter, "");
  let next = null;
  try {
    const body = new URLSearchParams(new FormData(form, submitter));
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" } });
    if (answer.ok) next = (await answer.json()).go;
  } catch {
    mayBeSentAgain(form);
    showAlert(form, submitter, form.dataset.send);
    return;
  }
  if (next) {
    location.assign(next);
    return;
  }
  mayBeSentAgain(form);
  form.dataset.native = "yes";
  form.requestSubmit(submitter);
}

function mayBeSentAgain(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

export function showAlert(form, before, text) {
  let alert = form.querySelector(".not-sent");
  if (!alert) {
    alert = Object.assign(document.createElement("p"), { className: "notice bad not-sent", role: "alert" });
    (before?.closest(".actions") ?? before)?.before(alert);
  }
  alert.textContent = text;
  alert.hidden = !text;
}

// Back from the browser's memory of the page.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.native;
});
