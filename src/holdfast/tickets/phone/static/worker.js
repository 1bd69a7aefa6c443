// Ticket pages that were opened once open again without a network. Nothing else is kept.

const KEPT = "tickets-1"

self.addEventListener("install", () => self.skipWaiting())
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim().then(keepOpenPages)))

self.addEventListener("fetch", (event) => {
  const { request } = event
  if (request.method === "GET") event.respondWith(fresh(request))
})

async function fresh(request) {
  const cache = await caches.open(KEPT)
  try {
    const answer = await fetch(request)
    if (answer.ok) await cache.put(request, answer.clone())
    if (answer.status === 404) await cache.delete(request)
    return answer
  } catch {
    return (await cache.match(request)) ?? Response.error()
  }
}

// The page that brought us here was loaded before us.
async function keepOpenPages() {
  const cache = await caches.open(KEPT)
  for (const client of await self.clients.matchAll()) await cache.add(client.url).catch(() => {})
}
