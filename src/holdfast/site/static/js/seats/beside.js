// What stands beside the map: what the one who looks holds already, and the time until the sale opens.

export async function showMine({ mine }, words) {
  const banner = document.getElementById("mine");
  const answer = await fetch(mine, { headers: { Accept: "application/json" } });
  if (!answer.ok) return;
  const { mine: bookings } = await answer.json();
  banner.replaceChildren(...bookings.map((booking) => lineOf(booking, words)));
  banner.hidden = !bookings.length;
}

function lineOf({ booking, state, seats, expires_at }, words) {
  const line = Object.assign(document.createElement("div"), { className: "mine-line" });
  const names = { held: "mine", paying: "paying", has: "has" };
  const text = words.say(names[state], {
    seats: words.list(seats), time: expires_at ? words.time(new Date(expires_at)) : "",
  });
  const go = Object.assign(document.createElement("a"), { className: "button" });
  go.href = `/bookings/${booking}`;
  go.textContent = words.say(state === "has" ? "mine_tickets" : "mine_go");
  line.append(Object.assign(document.createElement("p"), { textContent: text }), go);
  if (state === "held") line.append(releaseOf(booking, words));
  return line;
}

function releaseOf(booking, words) {
  const form = Object.assign(document.createElement("form"), { method: "post" });
  form.action = `/bookings/${booking}/release`;
  const back = Object.assign(document.createElement("input"), { type: "hidden", name: "back" });
  back.value = location.pathname;
  const button = Object.assign(document.createElement("button"), { className: "quiet" });
  button.textContent = words.say("mine_release");
  form.append(back, button);
  return form;
}

/** Counts down by the server's clock, and opens the page when the sale does. */
export function countDown(element) {
  const ahead = Date.now() - Date.parse(element.dataset.now); // of our clock, as far as we can know
  const opens = Date.parse(element.dataset.at), figure = element.querySelector("[role=timer]");
  element.hidden = false;
  const tick = () => {
    const left = Math.max(0, Math.ceil((opens - (Date.now() - ahead)) / 1000));
    const two = (value) => String(value).padStart(2, "0");
    const days = Math.floor(left / 86_400), hours = Math.floor(left / 3600) % 24;
    const clock = `${two(hours)}:${two(Math.floor(left / 60) % 60)}:${two(left % 60)}`;
    figure.textContent = days ? `${days} d ${clock}` : clock;
    if (left) return void setTimeout(tick, 1000 - (Date.now() % 1000));
    // Everybody's clock strikes at once: the first second is shared out among those who wait.
    setTimeout(() => location.reload(), Math.random() * 1500);
  };
  tick();
}
