// What stands beside the map: what the one who looks holds already, and the time until the sale opens.

/** Shows what the one who looks has of this show, and returns it: a list of bookings. */
export async function showMine({ mine }, l10n) {
  const banner = document.getElementById("mine");
  const answer = await fetch(mine, { headers: { Accept: "application/json" } });
  if (!answer.ok) return [];
  const { mine: bookings } = await answer.json();
  banner.replaceChildren(...bookings.map((booking) => lineOf(booking, l10n)));
  banner.hidden = !bookings.length;
  return bookings;
}

function lineOf({ booking, state, names, expires_at }, l10n) {
  const line = Object.assign(document.createElement("div"), { className: "mine-line" });
  const texts = { held: "mine", paying: "paying", has: "has" };
  const text = l10n.t(texts[state], {
    seats: l10n.list(names), time: expires_at ? l10n.time(new Date(expires_at)) : "",
  });
  const go = Object.assign(document.createElement("a"), { className: "button" });
  go.href = `/bookings/${booking}`;
  go.textContent = l10n.t(state === "has" ? "mine_tickets" : "mine_go");
  line.append(Object.assign(document.createElement("p"), { textContent: text }), go);
  if (state === "held") line.append(releaseOf(booking, l10n));
  return line;
}

function releaseOf(booking, l10n) {
  const form = Object.assign(document.createElement("form"), { method: "post" });
  form.action = `/bookings/${booking}/release`;
  const back = Object.assign(document.createElement("input"), { type: "hidden", name: "back" });
  back.value = location.pathname;
  const button = Object.assign(document.createElement("button"), { className: "quiet" });
  button.textContent = l10n.t("mine_release");
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
