// A JSON schema as a table: a row a field, fields of fields by their path.

import { element, inline } from "./element.js"

const DEPTH_MAX = 4

export function resolved(schema, components) {
  return schema.$ref ? components[schema.$ref.split("/").pop()] : schema
}

export function fieldTable(schema, components) {
  const rows = fields(schema, components, "", 0)
  return rows.length ? element("table", { class: "fields" }, element("tbody", {}, rows)) : null
}

export function fieldRow(name, schema, components, { must = false, note = "" } = {}) {
  const about = note || schema.description || resolved(schema, components).description || ""
  return element("tr", {},
    element("td", {}, name, must ? element("span", { class: "must", title: "required" }, " *") : ""),
    element("td", { class: "sort" }, sort(schema, components)),
    element("td", {}, inline(about), limits(schema, components)))
}

function fields(schema, components, prefix, depth) {
  const whole = inner(schema, components)
  if (!whole.properties || depth > DEPTH_MAX) return []
  return Object.entries(whole.properties).flatMap(([name, field]) => [
    fieldRow(prefix + name, field, components, { must: (whole.required || []).includes(name) }),
    ...fields(field, components, `${prefix}${name}${isList(field, components) ? "[]" : ""}.`, depth + 1),
  ])
}

function isList(schema, components) {
  return choices(schema, components).some(one => one.type === "array")
}

// The object that a field is, or has in its list, or may be instead of null.
function inner(schema, components) {
  for (const one of choices(schema, components)) {
    if (one.properties) return one
    if (one.type === "array" && one.items) return inner(one.items, components)
  }
  return {}
}

function choices(schema, components) {
  const whole = resolved(schema, components)
  return whole.anyOf ? whole.anyOf.flatMap(one => choices(one, components)) : [whole]
}

function sort(schema, components) {
  return choices(schema, components).map(one => {
    if (one.enum) return one.enum.map(value => JSON.stringify(value)).join(" | ")
    if (one.type === "array") return `list of ${one.items ? sort(one.items, components) : "anything"}`
    return one.format || one.type || "anything"
  }).join(" or ")
}

function limits(schema, components) {
  const words = choices(schema, components).flatMap(one => [
    one.minimum !== undefined && `≥ ${one.minimum}`,
    one.maximum !== undefined && `≤ ${one.maximum}`,
    one.minLength && `at least ${one.minLength} characters`,
    one.maxLength && `at most ${one.maxLength} characters`,
    one.minItems && `at least ${one.minItems}`,
    one.maxItems && `at most ${one.maxItems}`,
  ]).filter(Boolean)
  const usual = schema.default
  if (usual !== undefined && usual !== null && usual !== "") words.push(`default ${JSON.stringify(usual)}`)
  return words.length ? element("span", { class: "quiet" }, ` ${words.join(", ")}`) : ""
}
