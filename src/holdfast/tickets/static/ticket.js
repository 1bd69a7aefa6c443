// Keeps the page for when there is no network, and a live code fresh.
//
//   <main data-codes="live"><figure id="qr"></figure></main>
//
// A live code belongs to one phone: it goes by a name that this browser made up once. The server draws each
// code; without a network the last one stays, and goes stale, as it must.

const ASK_MS = 10_000
const page = document.querySelector("main.ticket")
const place = document.getElementById("qr")
const note = page.querySelector(".note")
const words = note.textContent

if ("serviceWorker" in navigator) navigator.serviceWorker.register("/tickets/worker.js")
if (page.dataset.codes === "live") {
  draw()
  setInterval(draw, ASK_MS)
}

async function draw() {
  try {
    const headers = { "Content-Type": "application/json" }
    const body = JSON.stringify({ phone: phone() })
    const answer = await fetch(`${location.pathname}/code`, { method: "POST", body, headers })
    if (answer.status === 404) {
      place.replaceChildren()
      note.textContent = page.dataset.givenAway
      return
    }
    if (!answer.ok) return // busy: retried soon
    const image = new Image()
    image.alt = ""
    image.src = (await answer.json()).qr_svg
    place.replaceChildren(image)
    note.textContent = words
  } catch {
    note.textContent = page.dataset.offline
  }
}

function phone() {
  const known = localStorage.getItem("phone")
  if (known) return known
  const name = crypto.randomUUID()
  localStorage.setItem("phone", name)
  return name
}
