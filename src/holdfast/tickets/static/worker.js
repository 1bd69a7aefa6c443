// Ticket pages that were opened once open again without a network. Nothing else is cached.

const CACHE_NAME = "tickets-1"
const SCRIPT = "/tickets/files/ticket.js" // loaded before us, and needed with every page
const NETWORK_TIMEOUT_MS = 3_000 // at the door, a network that does not answer counts as none

self.addEventListener("install", (event) => event.waitUntil(keep(SCRIPT).then(() => self.skipWaiting())))
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim().then(keepOpenPages)))

self.addEventListener("fetch", (event) => {
  const { request } = event
  if (request.method === "GET") event.respondWith(fresh(request))
})

async function fresh(request) {
  const cache = await caches.open(CACHE_NAME)
  const known = await cache.match(request)
  try {
    const answer = await (known ? Promise.race([fetch(request), tired()]) : fetch(request))
    if (answer.ok) await cache.put(request, answer.clone())
    if (answer.status === 404) await cache.delete(request)
    return answer.status >= 500 && known ? known : answer
  } catch {
    return known ?? Response.error()
  }
}

function tired() {
  return new Promise((_, refuse) => setTimeout(refuse, NETWORK_TIMEOUT_MS))
}

async function keep(url) {
  const cache = await caches.open(CACHE_NAME)
  await cache.add(url)
}

// The page that brought us here was loaded before us.
async function keepOpenPages() {
  for (const client of await self.clients.matchAll()) await keep(client.url).catch(() => {})
}
