// A layout as the server sends it (docs/layouts.md: one entry a run), decoded into arrays by seat number.

export const PLAIN = 0, WHEELCHAIR = 1, COMPANION = 2, RESTRICTED = 3;
export const TRAIT_LETTERS = "nwcr";
const TURN = Math.PI / 180;

/** Everything a page needs to know of a hall. `parts` are its sections, then its standing areas. */
export function decode(page) {
  const count = page.seats;
  const layout = {
    hash: page.hash,
    count,
    x: new Float32Array(count),
    y: new Float32Array(count),
    turn: new Float32Array(count), // radians: the way its row runs
    category: new Uint8Array(count),
    trait: new Uint8Array(count),
    runOf: new Int32Array(count).fill(-1),
    partOf: new Uint16Array(count),
    categories: page.categories,
    shapes: page.shapes,
    focal: page.focal,
    bounds: page.bounds,
    runs: [],
    parts: [],
  };
  for (const section of page.sections) decodeSection(layout, section);
  for (const area of page.areas) decodeArea(layout, area);
  const pitches = layout.parts.filter((part) => part.runs.length).map((part) => part.pitch);
  layout.pitch = pitches.length ? Math.min(...pitches) : 0.6;
  for (const part of layout.parts) part.area = areaOf(part.outline);
  return layout;
}

function decodeSection(layout, section) {
  const index = layout.parts.length;
  const part = {
    index, name: section.name, prefix: section.prefix, isArea: false, outline: section.outline,
    category: section.category, runs: [], pitch: Infinity,
  };
  let next = 0;
  for (const sent of section.runs) {
    const start = sent.start ?? next;
    next = start + sent.count;
    const { count, row, numbers } = sent;
    const run = { index: layout.runs.length, start, count, row, numbers, part };
    layout.runs.push(run);
    part.runs.push(run);
    placeSeats(layout, run, sent);
    colourSeats(layout, run, sent.category ?? section.category);
    for (let i = 0; i < sent.count; i++) {
      layout.runOf[start + i] = run.index;
      layout.partOf[start + i] = index;
      if (sent.traits) layout.trait[start + i] = TRAIT_LETTERS.indexOf(sent.traits[i]);
    }
  }
  if (part.pitch === Infinity) part.pitch = 0.55;
  part.box = boxOf(layout, part);
  layout.parts.push(part);
}

function placeSeats(layout, run, { line, arc, points }) {
  const { x, y, turn } = layout;
  for (let i = 0; i < run.count; i++) {
    const seat = run.start + i;
    if (line) {
      x[seat] = line[0] + i * line[2];
      y[seat] = line[1] + i * line[3];
      turn[seat] = Math.atan2(line[3], line[2]);
    } else if (arc) {
      const angle = (arc[3] + i * arc[4]) * TURN;
      x[seat] = arc[0] + arc[2] * Math.cos(angle);
      y[seat] = arc[1] + arc[2] * Math.sin(angle);
      turn[seat] = angle + Math.PI / 2;
    } else {
      [x[seat], y[seat]] = points[i];
    }
  }
  for (let seat = run.start; seat < run.start + run.count - 1; seat++) {
    const apart = Math.hypot(x[seat + 1] - x[seat], y[seat + 1] - y[seat]);
    if (apart > 0.01) run.part.pitch = Math.min(run.part.pitch, apart);
    if (line || arc) break; // they are all as far apart as the first two
  }
}

function colourSeats(layout, run, category) {
  const stretches = Array.isArray(category) ? category : [[category, run.count]];
  let seat = run.start;
  for (const [which, count] of stretches) {
    layout.category.fill(which, seat, seat + count);
    seat += count;
  }
}

function decodeArea(layout, area) {
  const part = {
    index: layout.parts.length, name: area.name, prefix: `${area.name}-`, isArea: true, runs: [],
    outline: area.outline, category: area.category, start: area.start, capacity: area.capacity, pitch: 0.6,
  };
  layout.category.fill(area.category, area.start, area.start + area.capacity);
  layout.partOf.fill(part.index, area.start, area.start + area.capacity);
  part.box = boxOf(layout, part);
  layout.parts.push(part);
}

/** left, top, right, bottom of what is to be drawn of a part. */
function boxOf(layout, part) {
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  const stretch = (x, y) => {
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], y);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], y);
  };
  for (const [x, y] of part.outline) stretch(x, y);
  for (const run of part.runs) {
    for (let seat = run.start; seat < run.start + run.count; seat++) stretch(layout.x[seat], layout.y[seat]);
  }
  const room = part.pitch === Infinity ? 0.6 : part.pitch * 0.7;
  return [box[0] - room, box[1] - room, box[2] + room, box[3] + room];
}

export function numberOf(layout, seat) {
  const run = layout.runs[layout.runOf[seat]];
  if (!run) return String(seat - layout.parts[layout.partOf[seat]].start + 1);
  const place = seat - run.start, numbers = run.numbers;
  if (!numbers) return String(place + 1);
  return typeof numbers[0] === "number" ? String(numbers[0] + numbers[1] * place) : numbers[place];
}

/** What is printed on it, and what the server calls it. */
export function labelOf(layout, seat) {
  const part = layout.parts[layout.partOf[seat]], run = layout.runs[layout.runOf[seat]];
  return part.prefix + (run ? `${run.row}-` : "") + numberOf(layout, seat);
}

/** The part at a place of the hall, or none. */
export function partAt(layout, x, y) {
  return layout.parts.find((part) => isInside(part.box, x, y) && isInOutline(part.outline, x, y));
}

export function isInside([left, top, right, bottom], x, y) {
  return x >= left && x <= right && y >= top && y <= bottom;
}

function isInOutline(outline, x, y) {
  let inside = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [ax, ay] = outline[i], [bx, by] = outline[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) inside = !inside;
  }
  return inside;
}

/** The seat nearest to a place that `suits`, not further than `reach`; -1: none. */
export function nearestSeat(layout, x, y, reach, suits) {
  let found = -1, best = reach * reach;
  for (let seat = 0; seat < layout.count; seat++) {
    if (layout.runOf[seat] < 0) continue;
    const dx = layout.x[seat] - x, dy = layout.y[seat] - y, apart = dx * dx + dy * dy;
    if (apart <= best && suits(seat)) {
      best = apart;
      found = seat;
    }
  }
  return found;
}

function areaOf(outline) {
  let twice = 0;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    twice += outline[j][0] * outline[i][1] - outline[i][0] * outline[j][1];
  }
  return Math.abs(twice) / 2;
}

/** Where the name of something is written: half-way across, where it is thickest. A bow is not in its box. */
export function middle(outline) {
  const xs = outline.map(([x]) => x), x = (Math.min(...xs) + Math.max(...xs)) / 2, walls = [];
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [ax, ay] = outline[i], [bx, by] = outline[j];
    if (ax > x !== bx > x) walls.push(ay + ((by - ay) * (x - ax)) / (bx - ax));
  }
  walls.sort((a, b) => a - b);
  let best = [0, 0];
  for (let i = 0; i + 1 < walls.length; i += 2) {
    if (walls[i + 1] - walls[i] > best[1] - best[0] || i === 0) best = [walls[i], walls[i + 1]];
  }
  return [x, (best[0] + best[1]) / 2];
}
