// /my and the pages of confirmed bookings open again without a network, with the files they need, and so do their
// tickets.
// A page is stored only if its response allows it, and deleted when it is gone or belongs to another account.
// An installed app starts at /: without a network that shows /my. All other pages are left to the browser.

const PAGES = "my-1";
const FILES = "files-{{edition}}";
const TICKETS = "tickets-1"; // the cache of tickets/static/worker.js
const OFFLINE = "/my/offline";
const START = "/";

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(PAGES).then((cache) => cache.add(OFFLINE)));
  self.skipWaiting();
});
self.addEventListener("activate", (event) => event.waitUntil(began()));

async function began() {
  const old = (name) => name.startsWith("files-") && name !== FILES;
  for (const name of (await caches.keys()).filter(old)) await caches.delete(name);
  await self.clients.claim();
}

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (pathname.startsWith("/static/")) event.respondWith(file(request, event.clientId));
  else if (request.mode === "navigate" && pathname === START) event.respondWith(start(request));
  else if (request.mode === "navigate" && isPage(pathname)) event.respondWith(page(request, pathname));
});

self.addEventListener("message", (event) => {
  const paths = event.data?.keep ?? [];
  for (const path of paths.filter(isPage)) event.waitUntil(pageWithTickets(path));
  event.waitUntil(caches.open(TICKETS).then((cache) => keepTickets(cache, paths.filter(isTicket))));
});

function isPage(path) {
  return path === "/my" || /^\/bookings\/[a-z2-7]{20}$/.test(path);
}

function isTicket(path) {
  return path.startsWith("/tickets/");
}

// Caches are opened before anything is fetched: what arrives after signing out has deleted them is stored nowhere.
async function pageWithTickets(path) {
  const cache = await caches.open(TICKETS);
  const answer = await page(new Request(path), path);
  if (!answer.ok) return;
  const links = (await answer.text()).matchAll(/href="(\/tickets\/[^"]+)" data-keep/g);
  await keepTickets(
    cache,
    [...links].map(([, link]) => link),
  );
}

async function keepTickets(cache, paths) {
  if (paths.length) await cache.addAll([...paths, "/tickets/files/ticket.js"]);
}

async function page(request, path) {
  const cache = await caches.open(PAGES);
  try {
    const answer = await fetch(request);
    const isSignedOut = answer.redirected || answer.type === "opaqueredirect" || answer.status === 401;
    if (isSignedOut) await forgetAll(cache);
    else if (answer.ok && answer.headers.get("Holdfast-Offline") === "keep") {
      await cache.put(path, answer.clone());
      await keepFiles(answer.clone());
    } else if (answer.status < 500) await cache.delete(path);
    return answer;
  } catch {
    return (await cache.match(path)) ?? (await cache.match(OFFLINE)) ?? Response.error();
  }
}

// What a page needs: it was loaded before there was a worker to see it.
async function keepFiles(answer) {
  const html = await answer.text();
  const cache = await caches.open(FILES);
  for (const [, path] of html.matchAll(/"(\/static\/[^"#]+)"/g)) {
    if (!(await cache.match(path))) await cache.add(path).catch(() => {});
  }
}

async function start(request) {
  try {
    return await fetch(request);
  } catch {
    const cache = await caches.open(PAGES);
    return (await cache.match("/my")) ?? (await cache.match(OFFLINE)) ?? Response.error();
  }
}

// Files of stored pages are stored with them; those of other pages are served by the browser as ever.
async function file(request, clientId) {
  const cache = await caches.open(FILES);
  const stored = await cache.match(request);
  if (stored) return stored;
  const answer = await fetch(request);
  const client = await self.clients.get(clientId);
  const isOfStoredPage = client && isPage(new URL(client.url).pathname);
  if (answer.ok && isOfStoredPage) await cache.put(request, answer.clone());
  return answer;
}

async function forgetAll(cache) {
  const isPersonal = (request) => new URL(request.url).pathname !== OFFLINE;
  for (const request of (await cache.keys()).filter(isPersonal)) await cache.delete(request);
}
