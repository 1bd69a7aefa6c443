// What a tap on the map does: it chooses a seat or places to stand, or brings the seats closer.

import { nearestSeat, partAt } from "./layout.js";
import { FREE } from "./states.js";

const TOUCH_PX = 24; // between seats: a finger cannot choose below that
const MOUSE_PX = 10;
const REACH_PX = 22; // how far from a seat a tap may be; or a seat further, where seats are wider apart
const CLOSE_PX = 34;

/** How far apart seats have to be on the screen to be chosen, in pixels. */
export const leastPitch = (isTouch) => (isTouch ? TOUCH_PX : MOUSE_PX);

/** Returns whether it did something. */
export function tap({ x, y, isTouch }, { layout, live, gesture, selection }) {
  const here = partAt(layout, x, y), mine = selection.chosen;
  if (here?.isArea) {
    selection.choosePart(here);
    return true;
  }
  if (gesture.view.scale * layout.pitch < leastPitch(isTouch)) return comeCloser(here, { x, y, isTouch }, layout, gesture);
  const reach = Math.max(REACH_PX / gesture.view.scale, layout.pitch);
  const seat = nearestSeat(layout, x, y, reach, (each) => live.states[each] === FREE || mine.has(each));
  const exact = nearestSeat(layout, x, y, layout.pitch * 0.6, () => true);
  // A tap on a taken seat is answered with a notice; a tap between seats selects a free one.
  if (exact >= 0 && exact !== seat && live.states[exact] !== FREE && !mine.has(exact)) {
    selection.chooseTaken(exact);
    return true;
  }
  if (seat >= 0) selection.choose(seat);
  return seat >= 0;
}

/** First to the whole part, then to its seats around the tap. */
function comeCloser(here, { x, y, isTouch }, layout, gesture) {
  const near = nearestSeat(layout, x, y, TOUCH_PX / gesture.view.scale, () => true);
  const each = here ?? layout.parts[layout.partOf[near]];
  if (!each) return false;
  const isThere = gesture.view.scale > gesture.fitted(each.box, 0.9).scale * 0.7;
  gesture.show(each.box, { pitchPx: isThere ? (isTouch ? CLOSE_PX : TOUCH_PX) : 0, around: { x, y } });
  return true;
}
