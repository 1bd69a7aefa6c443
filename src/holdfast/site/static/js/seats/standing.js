// Standing areas: a card for each beside the map, with how many tickets and a button that adds them.

export class Standing {
  /** `added(part)` when a card is sent, `counted(count)` when its number of tickets changes. */
  constructor(layout, l10n, { added, counted }) {
    Object.assign(this, { layout, l10n, counted });
    this.cards = [...document.querySelectorAll(".standing")].map((form) => {
      const part = layout.parts.find(({ isArea, name }) => isArea && name === form.dataset.area);
      const card = { form, part, input: form.elements.quantity, button: form.querySelector("[data-add]") };
      card.button.textContent = l10n.t("add");
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        event.stopPropagation(); // base.js must not mark it as sent: it may be sent again
        added(part);
      });
      form.addEventListener("click", ({ target }) => this.step(card, Number(target.dataset.step ?? 0)));
      card.input.addEventListener("change", () => this.step(card, 0));
      return card;
    });
  }

  step({ input }, by) {
    const count = Math.round(Number(input.value)) + by || 1;
    const within = Math.min(Number(input.max), Math.max(1, count));
    if (by || within !== Number(input.value)) input.value = within;
    this.counted(within);
  }

  setCount(count) {
    for (const { input } of this.cards) input.value = count;
  }

  /** What is left of each; `here` is the area in the middle of the map. */
  show(here, left) {
    for (const { form, part, button } of this.cards) {
      form.querySelector("[data-count]").textContent = left(part);
      form.classList.toggle("is-here", part === here);
      button.disabled = !part.free;
    }
  }
}
