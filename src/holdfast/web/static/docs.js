// The reference: reads the API document of this very server and draws it. Works without any other network.

import { element, prose } from "./element.js"
import { operationCard } from "./operation.js"

const find = document.getElementById("find")
const contents = document.getElementById("contents")
const main = document.getElementById("operations")

themes(document.getElementById("theme"))
draw(await (await fetch("/api/v1/openapi.json")).json())

function draw(api) {
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
  const about = document.getElementById("about")
  about.replaceChildren(
    element("h1", {}, `${api.info.title} ${api.info.version}`),
    ...prose(api.info.description),
    element("p", {}, "Everything below lives under ", element("code", {}, api.servers[0].url), "."))

  const tagged = name => all.filter(one => one.operation.tags.includes(name))
  const found = api.tags.map(tag => group(tag.name, tagged(tag.name), api))
  const nothing = element("p", { class: "quiet", hidden: "" }, "No operation has these words.")
  main.append(nothing)
  find.addEventListener("input", () => { nothing.hidden = filter(found, find.value) })
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== find) { event.preventDefault(); find.focus() }
  })
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView()
}

function group(name, operations, api) {
  const entries = operations.map(one => ({
    card: operationCard(one, api),
    link: element("a", { href: `#${one.operation.operationId}`, title: one.path },
      element("span", { class: `verb ${one.method}` }, one.method),
      element("span", {}, one.operation.summary)),
    words: [one.method, one.path, one.operation.summary, one.operation.description, name].join(" ").toLowerCase(),
  }))
  const cards = entries.map(one => one.card)
  const section = element("section", { "aria-label": name }, element("h2", {}, name), cards)
  const list = element("div", {}, element("h2", {}, name), entries.map(one => one.link))
  main.append(section)
  contents.append(list)
  return { section, list, entries }
}

// Every word must be there. Returns whether anything is left.
function filter(groups, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  let any = false
  for (const { section, list, entries } of groups) {
    for (const one of entries) {
      one.card.hidden = one.link.hidden = !words.every(word => one.words.includes(word))
    }
    section.hidden = list.hidden = entries.every(one => one.card.hidden)
    any ||= !section.hidden
  }
  return any
}

function themes(button) {
  const root = document.documentElement
  if (localStorage.theme) root.dataset.theme = localStorage.theme
  button.addEventListener("click", () => {
    const wished = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"
    root.dataset.theme = localStorage.theme = (root.dataset.theme || wished) === "dark" ? "light" : "dark"
  })
}
