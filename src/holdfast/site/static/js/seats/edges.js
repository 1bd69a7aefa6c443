// Where in the hall one is when seats are close: the letters of rows that begin out of sight, at the map's edge.
// They are placed when the view has settled; while it is pulled they go along with it.

const EDGE_PX = 13; // from the map's edge to the middle of a letter
const APART_PX = 15; // letters nearer than that to each other cannot be read

export class Edges {
  constructor(element, layout) {
    Object.assign(this, { element, layout });
    this.sides = ["left", "top"].map((name) => {
      const side = document.createElement("div");
      side.className = `edge edge-${name}`;
      element.append(side);
      return side;
    });
  }

  /** `runs` of the section that is looked at; the map is `width` by `height` pixels. */
  show(view, runs, width, height) {
    this.drawn = view;
    const found = [[], []];
    for (const run of runs) this.place(run, view, { width, height }, found);
    this.sides.forEach((side, which) => {
      side.style.transform = "";
      side.hidden = false;
      side.replaceChildren(...spaced(found[which]).map(({ row, x, y }) => {
        const letter = document.createElement("span");
        letter.textContent = row;
        letter.style.transform = `translate(${x}px, ${y}px) translate(-50%, -50%)`;
        return letter;
      }));
    });
  }

  /** Where a row comes into sight, unless it begins there: painters write its letter beside its first seat. */
  place({ start, count, row, part }, view, { width, height }, found) {
    const { x, y, turn } = this.layout, middle = start + (count >> 1);
    const which = Math.abs(Math.cos(turn[middle])) >= Math.abs(Math.sin(turn[middle])) ? 0 : 1;
    const at = (seat) => [(x[seat] - view.x) * view.scale + width / 2, (y[seat] - view.y) * view.scale + height / 2];
    const isSeen = ([left, top]) => left > 0 && left < width && top > 0 && top < height;
    const away = part.pitch * view.scale, [left, top] = at(start);
    const name = [left - Math.cos(turn[start]) * away, top - Math.sin(turn[start]) * away];
    if (isSeen(name)) return;
    let first = null;
    for (let seat = start; seat < start + count; seat++) {
      const place = at(seat);
      if (isSeen(place) && (!first || place[which] < first[which])) first = place;
    }
    if (!first) return;
    const edge = Math.max(EDGE_PX, first[which] - away);
    found[which].push({ row, x: which ? first[0] : edge, y: which ? edge : first[1], along: which ? first[0] : first[1] });
  }

  move(view) {
    const { drawn } = this;
    if (!drawn) return;
    const [left, top] = this.sides, isPulled = view.scale === drawn.scale;
    left.hidden = top.hidden = !isPulled;
    left.style.transform = `translateY(${(drawn.y - view.y) * view.scale}px)`;
    top.style.transform = `translateX(${(drawn.x - view.x) * view.scale}px)`;
  }

  clear() {
    this.drawn = null;
    for (const side of this.sides) side.hidden = true;
  }
}

/** From one end to the other, without letters that would lie upon each other. */
function spaced(letters) {
  const found = [];
  for (const letter of letters.sort((a, b) => a.along - b.along)) {
    const last = found.at(-1);
    if (!last || letter.along - last.along >= APART_PX || Math.abs(letter.x - last.x) + Math.abs(letter.y - last.y) > 40) {
      found.push(letter);
    }
  }
  return found;
}
