// What is chosen, in words: seats side by side of one price are one line.

import { groups, labelOf, numberOf } from "./layout.js";

/** Lines of the panel: {name, note, price, colour, seats: [{text, name, remove}]}. */
export function linesOf(selection) {
  const { area, layout, l10n } = selection;
  if (!area) return alike(layout, selection.seats).map((seats) => lineOf(selection, seats));
  const name = l10n.t("place", { count: area.count, area: area.part.name });
  return [{
    name, note: "", price: l10n.price(selection.total), colour: layout.categories[area.part.category].colour,
    seats: [{ text: "", name, remove: () => selection.set([]) }],
  }];
}

function lineOf(selection, seats) {
  const { layout, l10n } = selection, [first] = seats, price = selection.priceOf(first);
  const each = seats.length > 1 && price > 0 && l10n.t("each", { number: seats.length, price: l10n.price(price) });
  return {
    name: seats.length > 1 ? namesOf(selection, seats) : selection.nameOf(first),
    note: [selection.categoryOf(first), selection.noteOf(first), each].filter(Boolean).join(" · "),
    price: l10n.price(price * seats.length), colour: layout.categories[layout.category[first]].colour,
    seats: seats.map((seat) => ({
      text: numberOf(layout, seat), name: selection.nameOf(seat), remove: () => selection.choose(seat),
    })),
  };
}

/** Stretches of seats side by side that cost the same and are of one kind. */
function alike(layout, seats) {
  const isAlike = (a, b) => layout.category[a] === layout.category[b] && layout.trait[a] === layout.trait[b];
  return groups(layout, seats).flatMap((group) => group.reduce((found, seat) => {
    if (found.length && isAlike(found.at(-1)[0], seat)) found.at(-1).push(seat);
    else found.push([seat]);
    return found;
  }, []));
}

/** "Row G, seats 5–12"; seats that are not numbered one after the other are listed. */
function namesOf(selection, seats) {
  const { layout, l10n } = selection, run = layout.runs[layout.runOf[seats[0]]];
  const all = seats.map((seat) => numberOf(layout, seat)), ends = [Number(all[0]), Number(all.at(-1))];
  const isRange = Math.abs(ends[1] - ends[0]) === seats.length - 1;
  const numbers = isRange ? `${Math.min(...ends)}–${Math.max(...ends)}` : l10n.list(all);
  const name = selection.hasSections ? "seats" : "seats_plain";
  return l10n.t(name, { row: run.row, section: run.part.name, numbers });
}

/** The seats of a choice by what is printed on them: "G-5, G-6", "G-5–G-12". */
export function labels({ layout, l10n }, seats) {
  const nameOf = (seat) => labelOf(layout, seat);
  const names = groups(layout, seats).flatMap((group) =>
    group.length > 2 ? [`${nameOf(group[0])}–${nameOf(group.at(-1))}`] : group.map(nameOf));
  return l10n.list(names);
}
