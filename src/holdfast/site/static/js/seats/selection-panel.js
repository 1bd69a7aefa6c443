// What is chosen, what it costs, what is in the way, and the button that reserves it.
// On a phone the panel is a tray: one line and the button; the line opens the list above it.

const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

export class SelectionPanel {
  constructor(element, l10n, { held }) {
    Object.assign(this, { element, l10n });
    const find = (selector) => element.querySelector(selector);
    this.hint = find("[data-none]");
    this.list = find(".picked");
    this.notice = find(".notice");
    this.sum = find(".sum");
    this.line = find(".tray-line");
    this.button = find("[data-hold]");
    this.button.addEventListener("click", () => {
      if (this.button.getAttribute("aria-disabled") !== "true") held();
    });
    this.line.addEventListener("click", () => this.open(!element.classList.contains("is-open")));
    // What has focus is never under the tray.
    const { style } = document.documentElement;
    new ResizeObserver(() => (style.scrollPaddingBottom = `${element.offsetHeight + 12}px`)).observe(element);
  }

  open(isOpen) {
    this.element.classList.toggle("is-open", isOpen);
    this.line.setAttribute("aria-expanded", String(isOpen));
  }

  /** `lines` of summary.js; `line`: all of them in a few words; `button`: its text. */
  show({ lines, total, line, button }) {
    const isEmpty = !lines.length;
    this.element.classList.toggle("is-empty", isEmpty);
    if (isEmpty) this.open(false);
    this.hint.hidden = !isEmpty;
    this.list.replaceChildren(...lines.map((each) => this.item(each)));
    this.sum.hidden = this.button.hidden = this.line.hidden = isEmpty;
    this.sum.querySelector("strong").textContent = this.l10n.price(total);
    this.line.firstElementChild.textContent = line;
    this.button.textContent = button;
  }

  item({ name, note, price, colour, seats }) {
    const item = make("li"), swatch = make("i"), what = make("span", { className: "what", textContent: name });
    swatch.style.background = colour;
    if (note) what.append(make("small", { textContent: note }));
    const removes = seats.map((seat) => this.removeButton(seat, seats.length > 1));
    item.append(swatch, what, make("b", { textContent: price }));
    if (removes.length === 1) item.append(removes[0]);
    else {
      const row = make("div", { className: "picked-seats" });
      row.append(...removes);
      item.append(row);
    }
    return item;
  }

  removeButton({ text, name, remove }, isOneOfMany) {
    const button = make("button", { type: "button", textContent: isOneOfMany ? `${text} ×` : "×" });
    button.className = "bare remove";
    button.setAttribute("aria-label", this.l10n.t("remove", { seat: name }));
    button.addEventListener("click", remove);
    return button;
  }

  /** Something is in the way: a text, and `actions` {label, act} or {label, href}; a loud one comes first. */
  setNotice(text, actions = [], sort = "warn") {
    this.notice.hidden = !text;
    this.element.classList.toggle("has-notice", Boolean(text));
    this.notice.className = `notice ${sort}`;
    const row = make("div", { className: "instead" });
    row.append(...actions.map(({ label, act, href, isLoud }) => {
      const action = make(href ? "a" : "button", { textContent: label, className: isLoud ? "button loud" : "button quiet" });
      if (href) action.href = href;
      else Object.assign(action, { type: "button", onclick: act });
      return action;
    }));
    this.notice.replaceChildren(make("p", { textContent: text }), ...(actions.length ? [row] : []));
  }

  /** Whether the button may be pressed, and whether it has been: then it waits for the server. */
  setButton({ isAllowed, isBusy }) {
    this.button.setAttribute("aria-disabled", String(isBusy || !isAllowed));
    this.button.setAttribute("aria-busy", String(isBusy));
    if (isBusy) this.button.textContent = this.l10n.t("holding");
  }
}
