// Sentences, money and times for people; the server has sent the sentences of the page's language.

export class Words {
  constructor({ words, locale, currency, zone }) {
    this.sentences = words;
    this.locale = locale;
    this.plural = new Intl.PluralRules(locale);
    this.numbers = new Intl.NumberFormat(locale);
    this.zone = zone;
    const shape = { style: "currency", currency, trailingZeroDisplay: "stripIfInteger" };
    this.money = new Intl.NumberFormat(locale, shape);
    this.spoken = new Intl.NumberFormat(locale, { ...shape, currencyDisplay: "name" });
    this.minor = 10 ** this.money.resolvedOptions().maximumFractionDigits;
    this.lists = new Intl.ListFormat(locale, { type: "conjunction", style: "narrow" });
  }

  say(name, parts = {}) {
    let sentence = this.sentences[`map_${name}`];
    if (typeof sentence !== "string") {
      sentence = sentence[this.plural.select(parts.count)] ?? sentence.other;
      parts = { ...parts, count: this.number(parts.count) };
    }
    return sentence.replace(/\{(\w+)\}/g, (_, part) => parts[part]);
  }

  has(name) {
    return `map_${name}` in this.sentences;
  }

  number(value) {
    return this.numbers.format(value);
  }

  price(minor) {
    return this.money.format(minor / this.minor);
  }

  /** "500 rupees": for who hears it. */
  priceSpoken(minor) {
    return this.spoken.format(minor / this.minor);
  }

  list(names) {
    return this.lists.format(names);
  }

  time(when) {
    return when.toLocaleTimeString(this.locale, { hour: "numeric", minute: "2-digit" });
  }
}
