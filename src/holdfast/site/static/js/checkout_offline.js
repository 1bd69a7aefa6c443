// Keeps tickets on this device, so that they open without a network. Two workers: ours stores /my, the pages of
// bookings and their tickets, and shows /my where the app starts; that of the ticket pages answers for /tickets.
// Nothing else of the site is stored. The workers do the storing: a page that is left early stops its scripts.

const OURS = "/my-tickets-worker.js";
let isSigningOut = false;

if ("serviceWorker" in navigator) keep();

async function keep() {
  try {
    const ours = navigator.serviceWorker.register(OURS, { scope: "/" });
    const links = [...document.querySelectorAll("a[data-keep]")].map((link) => link.getAttribute("href"));
    if (links.length) await navigator.serviceWorker.register("/tickets/worker.js");
    await ours;
    const worker = (await navigator.serviceWorker.ready).active;
    if (!isSigningOut) worker?.postMessage({ keep: [location.pathname, ...links] });
  } catch (problem) {
    console.info("tickets are not stored for offline use:", problem.message);
  }
}

// Signing out deletes everything stored; the server's response clears the rest.
document.querySelector('form[action="/sign-out"]')?.addEventListener("submit", () => {
  isSigningOut = true;
  caches.keys().then((names) => names.forEach((name) => caches.delete(name)));
});
