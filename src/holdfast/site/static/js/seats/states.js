// The state of every seat, and how it stays true: a compact picture first, then every change as it happens.
// docs/live.md is what this follows.

export const FREE = 0, HELD = 1, BOOKED = 2, BLOCKED = 3;
export const LETTERS = "AHBX";
const POLL_MS = 5000;
const HIDDEN_MS = 60_000; // a hidden page gives up its connection for other viewers
const WAIT_MS = 10_000;

/** (version, letters) of the compact form: 8 bytes, 4 bytes, two bits a seat. */
export function unpack(buffer) {
  const view = new DataView(buffer), count = view.getUint32(8), states = new Uint8Array(count);
  const packed = new Uint8Array(buffer, 12);
  for (let seat = 0; seat < count; seat++) states[seat] = (packed[seat >> 2] >> ((seat & 3) * 2)) & 3;
  return { version: Number(view.getBigUint64(0)), states };
}

export class Live {
  /** `changed(seats)` after every change, `trouble(is)` when the news stop and when they go on. */
  constructor({ states, stream }, { changed, trouble, grown }) {
    this.url = states;
    this.streamUrl = stream;
    this.changed = changed;
    this.trouble = trouble;
    this.grown = grown;
    this.version = 0;
    this.states = null;
    this.isLive = true;
    this.seenAt = new Date(); // when the states were last known to be true
  }

  /** The first picture. */
  async open() {
    const { version, states } = await this.read();
    this.version = version;
    this.states = states;
  }

  follow() {
    this.connect();
    document.addEventListener("visibilitychange", () => {
      clearTimeout(this.leaving);
      if (document.hidden) this.leaving = setTimeout(() => this.leave(), HIDDEN_MS);
      else if (!this.source && !this.waiting) this.connect();
    });
    addEventListener("online", () => this.retry(0));
    addEventListener("offline", () => this.setLive(false));
  }

  async read() {
    const answer = await fetch(this.url);
    if (!answer.ok) throw new Error(`the map: ${answer.status}`);
    return unpack(await answer.arrayBuffer());
  }

  connect() {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.source?.close();
    const source = new EventSource(`${this.streamUrl}?since=${this.version}`);
    this.source = source;
    source.addEventListener("open", () => this.setLive(true));
    source.addEventListener("change", (event) => this.step(JSON.parse(event.data)));
    source.addEventListener("snapshot", (event) => {
      const { version, states } = JSON.parse(event.data);
      if (version >= this.version) this.replace(version, Uint8Array.from(states, (l) => LETTERS.indexOf(l)));
    });
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      if (source.readyState === EventSource.CLOSED) this.refused();
      else this.setLive(false); // the browser tries again by itself, from the last id
    });
  }

  leave() {
    this.source?.close();
    this.source = null;
  }

  setLive(isLive) {
    if (!isLive && this.isLive) this.seenAt = new Date();
    if (isLive !== this.isLive) this.trouble(!isLive);
    this.isLive = isLive;
  }

  /** Too many viewers: the map is polled until there is a free connection. */
  async refused() {
    this.leave();
    const wait = await this.askWhen();
    if (wait === 0) this.connect();
    else this.retry(wait);
  }

  /** How long the server wants us to wait, in ms; EventSource does not expose it. */
  async askWhen() {
    const ending = new AbortController();
    try {
      const answer = await fetch(`${this.streamUrl}?since=${this.version}`, { signal: ending.signal });
      if (answer.ok) return 0;
      return (Number(answer.headers.get("Retry-After")) || 5) * 1000;
    } catch {
      return WAIT_MS;
    } finally {
      ending.abort();
    }
  }

  retry(wait) {
    clearTimeout(this.waiting);
    const until = performance.now() + wait;
    const poll = async () => {
      if (performance.now() >= until) {
        this.connect();
        return;
      }
      try {
        const { version, states } = await this.read();
        if (version > this.version) this.replace(version, states);
        this.setLive(true);
      } catch {
        this.setLive(false);
      }
      this.waiting = setTimeout(poll, Math.min(POLL_MS, Math.max(250, until - performance.now())));
    };
    this.waiting = setTimeout(poll, 0);
  }

  step({ version, changes }) {
    if (version <= this.version) return;
    this.version = version;
    const seats = [];
    for (const [seat, letter] of changes) {
      const state = LETTERS.indexOf(letter);
      if (seat >= this.states.length) return void this.grown();
      if (this.states[seat] === state) continue;
      this.states[seat] = state;
      seats.push(seat);
    }
    if (seats.length) this.changed(seats);
  }

  replace(version, states) {
    if (states.length !== this.states.length) return void this.grown();
    const seats = [];
    for (let seat = 0; seat < states.length; seat++) if (states[seat] !== this.states[seat]) seats.push(seat);
    this.version = version;
    this.states.set(states);
    if (seats.length) this.changed(seats);
  }
}
