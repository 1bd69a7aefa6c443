// The events of a sale, played forwards and backwards. replay/encoding.py describes the bytes.

export const FREE = 0;
export const HELD = 1;
export const BOOKED = 2;
export const BLOCKED = 3;
const WANTED = 4;
const REFUSED = 5;
const QUEUE = 6;
const KIND_BITS = 3;

export function unpack(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export class Tape {
  constructor(events, seats) {
    this.events = events;
    this.seats = seats;
    this.changed = []; // seats, since the last look
    this.rewind();
  }

  rewind() {
    this.states = new Uint8Array(this.seats);
    this.heat = new Uint32Array(this.seats); // how often each was taken or refused
    this.counts = [this.seats, 0, 0, 0];
    this.refused = 0;
    this.waiting = 0;
    this.inside = 0;
    this.place = 0; // of the next event's head
    this.atMs = 0;
    this.isNew = true;
    this.changed.length = 0;
    this.nextMs = this.hasMore() ? this.number() : Infinity;
  }

  hasMore() {
    return this.place < this.events.length;
  }

  /** Everything up to this moment has happened, and nothing after it. */
  seek(ms) {
    if (ms < this.atMs) this.rewind();
    while (this.nextMs <= ms) this.step();
    this.atMs = ms;
  }

  step() {
    const head = this.number();
    const kind = head & ((1 << KIND_BITS) - 1);
    const count = Math.floor(head / (1 << KIND_BITS));
    if (kind <= BLOCKED) this.change(kind, count);
    else if (kind === WANTED) this.want(count);
    else if (kind === REFUSED) this.refused += count;
    else if (kind === QUEUE) {
      this.waiting = this.number();
      this.inside = this.number();
    }
    this.nextMs = this.hasMore() ? this.nextMs + this.number() : Infinity;
  }

  change(state, runs) {
    let seat = 0;
    for (let run = 0; run < runs; run += 1) {
      seat += this.signed();
      const end = seat + this.number() + 1;
      for (; seat < end; seat += 1) {
        const was = this.states[seat];
        this.counts[was] -= 1;
        this.counts[state] += 1;
        this.states[seat] = state;
        if (was === FREE && (state === HELD || state === BOOKED)) this.heat[seat] += 1;
        this.changed.push(seat);
      }
    }
  }

  want(count) {
    let seat = 0;
    for (let entry = 0; entry < count; entry += 1) {
      seat += this.signed();
      this.heat[seat] += this.number();
      this.changed.push(seat);
    }
  }

  number() {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.events[this.place];
      this.place += 1;
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
  }

  signed() {
    const value = this.number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}
