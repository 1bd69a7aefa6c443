// Which seats a tap selects, and which selections leave a single seat.
// The same picture of a row as the server's (holds/orphans.py): a free seat is free whatever it costs; taken
// seats, aisles and the ends of a row are walls. Nothing here touches the page.

import { COMPANION, WHEELCHAIR, groups } from "./layout.js";
import { FREE, HELD } from "./states.js";

const isSpecial = (layout, seat) => layout.trait[seat] === WHEELCHAIR || layout.trait[seat] === COMPANION;

function isSingle(isFree, run, seat) {
  if (seat < run.start || seat >= run.start + run.count || !isFree(seat)) return false;
  const left = seat > run.start && isFree(seat - 1);
  const right = seat + 1 < run.start + run.count && isFree(seat + 1);
  return !left && !right;
}

/** Seats that become single when the picked ones of a run go. */
export function orphans(states, run, picked) {
  const before = (seat) => states[seat] === FREE;
  const gone = new Set(picked);
  const after = (seat) => before(seat) && !gone.has(seat);
  const beside = new Set(picked.flatMap((seat) => [seat - 1, seat + 1]));
  return [...beside].filter((seat) => isSingle(after, run, seat) && !isSingle(before, run, seat));
}

/** Seats that the server would rather give, or null if it is fine with these. */
export function betterThan(layout, states, seats) {
  const byRun = new Map();
  for (const seat of [...seats].sort((a, b) => a - b)) {
    const run = layout.runOf[seat];
    byRun.set(run, [...(byRun.get(run) ?? []), seat]);
  }
  let isImproved = false;
  const better = [];
  for (const [run, picked] of byRun) {
    const instead = run < 0 ? null : betterInRun(layout, states, layout.runs[run], picked);
    isImproved ||= instead !== null;
    better.push(...(instead ?? picked));
  }
  return isImproved ? better.sort((a, b) => a - b) : null;
}

function betterInRun(layout, states, run, picked) {
  if (picked.some((seat) => isSpecial(layout, seat)) || !orphans(states, run, picked).length) return null;
  const windows = windowsOf(layout, states, run, picked.length, (seat) => !isSpecial(layout, seat));
  const fine = windows.filter((window) => !orphans(states, run, window).length);
  fine.sort((a, b) => Math.abs(a[0] - picked[0]) - Math.abs(b[0] - picked[0]) || a[0] - b[0]);
  return fine[0] ?? null;
}

/** Every stretch of `count` free seats in a run that suit. */
function windowsOf(layout, states, run, count, suits) {
  const found = [];
  for (let start = run.start; start + count <= run.start + run.count; start++) {
    const window = Array.from({ length: count }, (_, place) => start + place);
    if (window.every((seat) => states[seat] === FREE && suits(seat))) found.push(window);
  }
  return found;
}

/**
 * As many seats as wanted side by side, the tapped one among them: the tapped one in the middle, unless that
 * leaves a single seat. Fewer, when there are not so many free together; a special place only when one was
 * tapped.
 */
export function togetherAt(layout, states, tapped, count) {
  const run = layout.runs[layout.runOf[tapped]];
  const mayBeSpecial = isSpecial(layout, tapped);
  const suits = (seat) => mayBeSpecial || !isSpecial(layout, seat);
  for (let size = count; size > 0; size--) {
    const windows = windowsOf(layout, states, run, size, suits).filter((window) => window.includes(tapped));
    if (!windows.length) continue;
    const cost = (window) =>
      (mayBeSpecial || !orphans(states, run, window).length ? 0 : 100) +
      Math.abs(window[0] + (size - 1) / 2 - tapped);
    return windows.sort((a, b) => cost(a) - cost(b) || a[0] - b[0])[0];
  }
  return [];
}

/** Up to `limit` groups of as many seats as were wanted, near them: same price first, then no single left. */
export function alternatives(layout, states, seats, limit = 3) {
  const first = seats[0], count = seats.length, category = layout.category[first];
  const needsSpace = seats.some((seat) => layout.trait[seat] === WHEELCHAIR);
  const from = { x: layout.x[first], y: layout.y[first] };
  const near = layout.runs
    .map((run) => {
      const middle = run.start + (run.count >> 1);
      return { run, apart: Math.hypot(layout.x[middle] - from.x, layout.y[middle] - from.y) };
    })
    .sort((a, b) => a.apart - b.apart);
  const found = [];
  for (const [looked, { run }] of near.entries()) {
    if (looked > 30 && found.length >= limit) break;
    for (const window of windowsOf(layout, states, run, count, () => true)) {
      const special = window.filter((seat) => isSpecial(layout, seat));
      if (needsSpace ? !window.some((seat) => layout.trait[seat] === WHEELCHAIR) : special.length) continue;
      const middle = window[count >> 1];
      const other = window.some((seat) => layout.category[seat] !== category) ? 1e6 : 0;
      const single = orphans(states, run, window).length ? 1e3 : 0;
      found.push([other + single + Math.hypot(layout.x[middle] - from.x, layout.y[middle] - from.y), window]);
    }
  }
  const chosen = [];
  for (const [, window] of found.sort((a, b) => a[0] - b[0])) {
    if (chosen.length < limit && chosen.every((other) => !other.some((seat) => window.includes(seat)))) {
      chosen.push(window);
    }
  }
  return chosen;
}

/** Up to three whole choices instead of one that lost seats: stretches that lost none stay as they are. */
export function replacements(layout, states, wanted, lost) {
  const isHurt = (group) => group.some((seat) => lost.includes(seat));
  const all = groups(layout, wanted), hurt = all.filter(isHurt);
  if (hurt.length > 1) return alternatives(layout, states, wanted);
  const stays = all.filter((group) => !isHurt(group)).flat(), taken = states.slice();
  for (const seat of stays) taken[seat] = HELD;
  return alternatives(layout, taken, hurt[0]).map((group) => [...stays, ...group].sort((a, b) => a - b));
}
