// What is chosen, what it costs, what is in the way, and the button that holds it.

export class SelectionPanel {
  constructor(element, l10n, { removed, held, taken }) {
    Object.assign(this, { element, l10n, removed, taken });
    const find = (selector) => element.querySelector(selector);
    this.hint = find("[data-none]");
    this.list = find(".picked");
    this.notice = find(".notice");
    this.sum = find(".sum");
    this.button = find("[data-hold]");
    this.button.addEventListener("click", () => {
      if (this.button.getAttribute("aria-disabled") !== "true") held();
    });
  }

  /** `items`: {name, note, price, colour, remove}; `button`: its text. */
  show({ items, total, button }) {
    const isEmpty = !items.length;
    this.element.classList.toggle("is-empty", isEmpty);
    this.hint.hidden = !isEmpty;
    this.list.replaceChildren(...items.map((item) => this.item(item)));
    this.sum.hidden = this.button.hidden = isEmpty;
    this.sum.querySelector("strong").textContent = this.l10n.price(total);
    this.button.textContent = button;
  }

  item({ name, note, price, colour, remove }) {
    const line = document.createElement("li");
    const swatch = document.createElement("i");
    swatch.style.background = colour;
    const what = Object.assign(document.createElement("span"), { className: "what", textContent: name });
    if (note) what.append(Object.assign(document.createElement("small"), { textContent: note }));
    const cost = Object.assign(document.createElement("b"), { textContent: price });
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
    button.className = "bare remove";
    button.setAttribute("aria-label", this.l10n.t("remove", { seat: name }));
    button.addEventListener("click", remove);
    line.append(swatch, what, cost, button);
    return line;
  }

  /** Something is in the way: a text, and groups of seats that may be had instead. */
  setNotice(text, groups = [], sort = "warn") {
    this.notice.hidden = !text;
    this.notice.className = `notice ${sort}`;
    const paragraph = Object.assign(document.createElement("p"), { textContent: text });
    const buttons = groups.map(({ label, take }) => {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet" });
      button.textContent = label;
      button.addEventListener("click", take);
      return button;
    });
    const row = Object.assign(document.createElement("div"), { className: "instead" });
    row.append(...buttons);
    this.notice.replaceChildren(paragraph, ...(buttons.length ? [row] : []));
  }

  /** Whether the button may be pressed, and whether it has been: then it waits for the server. */
  setButton({ isAllowed, isBusy }) {
    this.button.setAttribute("aria-disabled", String(isBusy || !isAllowed));
    this.button.setAttribute("aria-busy", String(isBusy));
    if (isBusy) this.button.textContent = this.l10n.t("holding");
  }
}
