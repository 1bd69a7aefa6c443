// Texts, money and times in the page's language; the server sends the texts.

export class Localiser {
  constructor({ texts, locale, currency, zone, spelt, isConcert }) {
    Object.assign(this, { texts, locale, zone, spelt, isConcert });
    this.shape = { style: "currency", currency, trailingZeroDisplay: "stripIfInteger" };
    this.made = {};
  }

  /** Made at its first use: a browser that spells money for the first time needs a while, and the map waits. */
  once(name, make) {
    return (this.made[name] ??= make());
  }

  get money() {
    return this.once("money", () => new Intl.NumberFormat(this.locale, this.shape));
  }

  get spoken() {
    return this.once("spoken", () => new Intl.NumberFormat(this.locale, { ...this.shape, currencyDisplay: "name" }));
  }

  get numbers() {
    return this.once("numbers", () => new Intl.NumberFormat(this.locale));
  }

  get plural() {
    return this.once("plural", () => new Intl.PluralRules(this.locale));
  }

  get lists() {
    return this.once("lists", () => new Intl.ListFormat(this.locale, { type: "conjunction", style: "narrow" }));
  }

  t(name, parts = {}) {
    let text = this.texts[name];
    if (typeof text !== "string") {
      text = text[this.plural.select(parts.count)] ?? text.other;
      parts = { ...parts, count: this.number(parts.count) };
    }
    return text.replace(/\{(\w+)\}/g, (_, part) => parts[part]);
  }

  has(name) {
    return name in this.texts;
  }

  get minor() {
    return 10 ** this.money.resolvedOptions().maximumFractionDigits;
  }

  number(value) {
    return value < 1000 ? String(value) : this.numbers.format(value);
  }

  /** As the server has spelt it, where it has. */
  price(minor) {
    return this.spelt[minor] ?? this.money.format(minor / this.minor);
  }

  /** "500 rupees": for screen readers. */
  priceSpoken(minor) {
    return this.spoken.format(minor / this.minor);
  }

  /** A section by its name; a standing area says what it is. */
  partName({ name, isArea }) {
    return isArea ? this.t("standing", { area: name }) : name;
  }

  /** What is in front of the seats: usual names in the page's language. Concerts have no screen. */
  shapeName(text) {
    const name = text.toLowerCase() === "screen" && this.isConcert ? "stage" : text.toLowerCase();
    return this.texts[`shape_${name}`] ?? text;
  }

  list(names) {
    return this.lists.format(names);
  }

  time(when) {
    return when.toLocaleTimeString(this.locale, { timeStyle: "short" });
  }
}
