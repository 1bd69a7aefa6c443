// Home and search, a little quicker: cities of the reader's own time zone first, and a "near me" button.

// No permission is needed: the browser's time zone is a good guess.
const zoneOf = (timeZone) => Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone;
for (const form of document.querySelectorAll("form[data-cities]")) {
  // A zone may have two names, Asia/Kolkata and Asia/Calcutta: the browser makes one of them.
  const buttons = [...form.querySelectorAll("button[data-zone]")];
  const near = buttons.filter((button) => zoneOf(button.dataset.zone) === zoneOf());
  for (const button of near) button.classList.add("is-near");
  const country = near[0]?.closest("fieldset");
  if (country) country.parentElement.insertBefore(country, form.querySelector("fieldset"));
}

for (const button of document.querySelectorAll("button[data-near]")) {
  if (!navigator.geolocation) continue;
  button.hidden = false;
  button.addEventListener("click", () => {
    button.setAttribute("aria-busy", "true");
    navigator.geolocation.getCurrentPosition(({ coords }) => {
      const to = new URL(button.dataset.near, location);
      // Rounded to a kilometre: enough for distances, and it does not reveal a home address.
      to.searchParams.set("near", `${coords.latitude.toFixed(2)},${coords.longitude.toFixed(2)}`);
      location.assign(to);
    }, () => {
      button.removeAttribute("aria-busy");
      const message = Object.assign(document.createElement("p"), { textContent: button.dataset.refused });
      message.className = "fine";
      message.setAttribute("role", "alert");
      button.replaceWith(message);
    }, { timeout: 10000, maximumAge: 600000 });
  });
}

// On a phone the filters are folded away at first; without this script they stand open.
const fold = document.querySelector(".filters-fold");
if (fold && matchMedia("(max-width: 60rem)").matches) fold.open = false;
