// Keeps tickets on this device, so that they open without a network. Two workers: ours stores /my and the pages
// of bookings, and shows /my where the app starts; that of the ticket pages stores /tickets. Nothing else of the
// site is stored.

const OURS = "/my-tickets-worker.js";
const TICKETS = "tickets-1"; // the cache of tickets/phone/static/worker.js

if ("serviceWorker" in navigator) keep();

async function keep() {
  try {
    await navigator.serviceWorker.register(OURS, { scope: "/" });
    const links = [...document.querySelectorAll("a[data-keep]")].map((link) => link.getAttribute("href"));
    const tickets = links.filter((path) => path.startsWith("/tickets/"));
    if (tickets.length) {
      await navigator.serviceWorker.register("/tickets/worker.js");
      const cache = await caches.open(TICKETS);
      await cache.addAll([...tickets, "/tickets/files/ticket.js"]);
    }
    const worker = (await navigator.serviceWorker.ready).active;
    const bookings = links.filter((path) => path.startsWith("/bookings/"));
    worker?.postMessage({ keep: [location.pathname, ...bookings] });
  } catch (problem) {
    console.info("tickets are not stored for offline use:", problem.message);
  }
}

// Signing out deletes everything stored; the server's response clears the rest.
document.querySelector('form[action="/sign-out"]')?.addEventListener("submit", () => {
  caches.keys().then((names) => names.forEach((name) => caches.delete(name)));
});
