// One operation: what it is for, what it takes, what it answers, and a curl line to paste.

import { curl } from "./curl.js"
import { element, inline, prose } from "./element.js"
import { fieldRow, fieldTable } from "./schema.js"

export function operationCard({ path, method, operation }, api) {
  const { schemas } = api.components
  return element("article", { class: "operation", id: operation.operationId },
    element("h3", {}, element("span", { class: `verb ${method}` }, method), path),
    element("p", { class: "summary" }, inline(operation.summary || "")),
    pills(operation),
    prose(operation.description),
    parameters(operation, schemas),
    body(operation, schemas),
    shell(curl({ path, method, operation }, api)),
    element("h4", {}, "Answers"),
    Object.entries(operation.responses).map(([status, response]) => answer(status, response, schemas)))
}

function pills(operation) {
  const words = [operation["x-role"] ? `signed in: ${operation["x-role"]}` : "open to everybody"]
  const takesKey = (operation.parameters || []).some(one => one.name === "Idempotency-Key")
  if (takesKey) words.push("safe to retry with its key")
  return element("div", {}, words.map(word => element("span", { class: "pill" }, word)))
}

function parameters(operation, schemas) {
  if (!operation.parameters) return null
  const rows = operation.parameters.map(one =>
    fieldRow(one.name, one.schema, schemas, { must: one.required, note: one.description }))
  return [element("h4", {}, "Parameters"), element("table", { class: "fields" }, element("tbody", {}, rows))]
}

function body(operation, schemas) {
  const json = operation.requestBody?.content["application/json"]
  return json ? [element("h4", {}, "Body"), fieldTable(json.schema, schemas)] : null
}

function shell(text) {
  const copy = element("button", { type: "button" }, "Copy")
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text)
    copy.textContent = "Copied"
    setTimeout(() => { copy.textContent = "Copy" }, 1500)
  })
  return [element("h4", {}, "Example", copy), element("pre", { tabindex: "0" }, element("code", {}, text))]
}

function answer(status, response, schemas) {
  const problem = response.content?.["application/problem+json"]
  const json = response.content?.["application/json"]
  const words = problem
    ? Object.values(problem.examples).map(one => one.summary).join(" · ")
    : `${response.description}${others(response)}`
  return element("details", {},
    element("summary", {},
      element("span", { class: `status ${problem ? "refused" : "fine"}` }, status), ` ${words}`),
    problem ? problems(problem) : null,
    json ? [fieldTable(json.schema, schemas), example(json.example)] : null)
}

function others(response) {
  const names = Object.keys(response.content || {}).filter(name => name !== "application/json")
  return names.length ? `, also as ${names.join(", ")}` : ""
}

function problems(problem) {
  return element("ul", { class: "problems" }, Object.entries(problem.examples).map(([code, one]) =>
    element("li", {},
      element("a", { href: `/problems/${code}` }, element("code", {}, code)), " ", inline(one.value.detail))))
}

function example(value) {
  return element("pre", { tabindex: "0" }, element("code", {}, JSON.stringify(value, null, 2)))
}
