// A layout as the server sends it (docs/layouts.md: one entry a run), decoded into arrays by seat number.

export const PLAIN = 0, WHEELCHAIR = 1, COMPANION = 2, RESTRICTED = 3;
export const TRAIT_LETTERS = "nwcr";
const TURN = Math.PI / 180;

/** Everything a page needs to know of a hall. `parts` are its sections, then its standing areas. */
export function decode(page) {
  return seated(outlined(page), page);
}

/** The hall from far: its parts, without a single seat. That is soon done, however big it is. */
export function outlined(page) {
  const layout = {
    hash: page.hash, count: page.seats, categories: page.categories, shapes: page.shapes, focal: page.focal,
    bounds: page.bounds, runs: [], parts: [],
  };
  for (const section of page.sections) {
    const { name, prefix, outline, category } = section;
    const pitch = Math.min(...section.runs.map(pitchOf));
    addPart(layout, { name, prefix, isArea: false, outline, category, pitch: pitch < Infinity ? pitch : 0.55 });
  }
  for (const { name, outline, category, start, capacity } of page.areas) {
    const prefix = `${name}-`;
    addPart(layout, { name, prefix, isArea: true, outline, category, start, capacity, pitch: 0.6 });
  }
  const pitches = page.sections.flatMap(({ runs }, index) => (runs.length ? [layout.parts[index].pitch] : []));
  layout.pitch = pitches.length ? Math.min(...pitches) : 0.6;
  return layout;
}

function addPart(layout, part) {
  const { outline } = part;
  layout.parts.push({ ...part, index: layout.parts.length, runs: [], area: areaOf(outline), box: boxOf(part, outline) });
}

/** And every seat of it. */
export function seated(layout, page) {
  const { count } = layout;
  Object.assign(layout, {
    x: new Float32Array(count),
    y: new Float32Array(count),
    turn: new Float32Array(count), // radians: the way its row runs
    category: new Uint8Array(count),
    trait: new Uint8Array(count),
    runOf: new Int32Array(count).fill(-1),
    partOf: new Uint16Array(count),
  });
  page.sections.forEach((section, index) => seatSection(layout, section, layout.parts[index]));
  for (const { index, start, capacity, category } of layout.parts.filter(({ isArea }) => isArea)) {
    layout.category.fill(category, start, start + capacity);
    layout.partOf.fill(index, start, start + capacity);
  }
  return layout;
}

function seatSection(layout, section, part) {
  const ends = [...part.outline];
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
    layout.runOf.fill(run.index, start, next);
    layout.partOf.fill(part.index, start, next);
    for (let i = 0; i < count; i++) {
      if (sent.traits) layout.trait[start + i] = TRAIT_LETTERS.indexOf(sent.traits[i]);
      if (!sent.line || i === 0 || i === count - 1) ends.push([layout.x[start + i], layout.y[start + i]]);
    }
  }
  part.box = boxOf(part, ends);
}

/** How far apart the seats of a run are: all as far as the first two. */
function pitchOf({ line, arc, points, count }) {
  if (count < 2) return Infinity;
  if (line) return far(Math.hypot(line[2], line[3]));
  if (arc) return far(2 * arc[2] * Math.abs(Math.sin((arc[4] * TURN) / 2)));
  const steps = points.slice(1).map(([x, y], i) => far(Math.hypot(x - points[i][0], y - points[i][1])));
  return Math.min(...steps);
}

const far = (apart) => (apart > 0.01 ? apart : Infinity);

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
}

function colourSeats(layout, run, category) {
  const stretches = Array.isArray(category) ? category : [[category, run.count]];
  let seat = run.start;
  for (const [which, count] of stretches) {
    layout.category.fill(which, seat, seat + count);
    seat += count;
  }
}

/** left, top, right, bottom of what is to be drawn of a part. */
function boxOf({ pitch }, places) {
  const box = [Infinity, Infinity, -Infinity, -Infinity], room = pitch * 0.7;
  for (const [x, y] of places) {
    box[0] = Math.min(box[0], x - room);
    box[1] = Math.min(box[1], y - room);
    box[2] = Math.max(box[2], x + room);
    box[3] = Math.max(box[3], y + room);
  }
  return box;
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

/** The part at a place, else the nearest one. */
export function partNear(layout, x, y) {
  const apart = ({ box: [left, top, right, bottom] }) =>
    Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
  return partAt(layout, x, y) ?? layout.parts.reduce((best, part) => (apart(part) < apart(best) ? part : best));
}

export function isInside([left, top, right, bottom], x, y) {
  return x >= left && x <= right && y >= top && y <= bottom;
}

export function isInOutline(outline, x, y) {
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

/**
 * Where the name of something is written, how high and how wide it is there. Through its centre of gravity, where it
 * is thickest: a bow is not in the middle of its box, and a wedge is wider at one end.
 */
export function middle(outline) {
  const [top, bottom] = thickest(outline, 0, centre(outline)), y = (top + bottom) / 2;
  const [left, right] = thickest(outline, 1, y);
  return [(left + right) / 2, y, bottom - top, right - left];
}

/** The x of the centre of gravity. */
function centre(outline) {
  let twice = 0, sum = 0;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const [ax, ay] = outline[j], [bx, by] = outline[i], cross = ax * by - bx * ay;
    twice += cross;
    sum += (ax + bx) * cross;
  }
  return twice ? sum / (3 * twice) : outline[0][0];
}

/** The longest stretch within the outline on a line: from top to bottom at x (axis 0), or across at y (axis 1). */
function thickest(outline, axis, at) {
  const walls = [], other = 1 - axis;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i++) {
    const a = outline[i], b = outline[j];
    if (a[axis] > at === b[axis] > at) continue;
    walls.push(a[other] + ((b[other] - a[other]) * (at - a[axis])) / (b[axis] - a[axis]));
  }
  walls.sort((a, b) => a - b);
  let best = [walls[0] ?? at, walls[1] ?? at];
  for (let i = 2; i + 1 < walls.length; i += 2) {
    if (walls[i + 1] - walls[i] > best[1] - best[0]) best = [walls[i], walls[i + 1]];
  }
  return best;
}

/** Seats of a choice as stretches that are side by side. */
export function groups(layout, seats) {
  const found = [];
  for (const seat of [...seats].sort((a, b) => a - b)) {
    const last = found.at(-1);
    const touches = last && last.at(-1) === seat - 1 && layout.runOf[last[0]] === layout.runOf[seat];
    if (touches) last.push(seat);
    else found.push([seat]);
  }
  return found;
}
