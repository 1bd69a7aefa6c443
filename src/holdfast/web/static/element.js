// Elements from plain values. Text is always text: nothing from the document is ever read as markup.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(name, value)
  }
  made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""))
  return made
}

// Paragraphs by blank lines, `code` by backticks: all the markup our texts have.
export function prose(text) {
  return (text || "").split(/\n\s*\n/).filter(part => part.trim()).map(part => element("p", {}, inline(part)))
}

export function inline(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part))
}
