// A curl line for an operation, with the example values of the document.

export function curl({ path, method, operation }, api, origin = location.origin) {
  const verb = method === "get" ? "" : `-X ${method.toUpperCase()} `
  const parts = [`curl ${verb}"${origin}${api.servers[0].url}${filled(path)}"`]
  if (operation["x-role"]) parts.push('-H "Authorization: Bearer $TOKEN"')
  const takesKey = (operation.parameters || []).some(one => one.name === "Idempotency-Key")
  if (takesKey) parts.push('-H "Idempotency-Key: $(uuidgen)"')
  const json = operation.requestBody?.content["application/json"]
  if (json) {
    parts.push('-H "Content-Type: application/json"')
    parts.push(`-d '${JSON.stringify(json.example).replaceAll("'", "'\\''")}'`)
  }
  return parts.join(" \\\n  ")

  function filled(template) {
    return template.replace(/\{(\w+)\}/g, (_, name) => {
      const parameter = (operation.parameters || []).find(one => one.in === "path" && one.name === name)
      return parameter?.schema.type === "integer" ? "1" : name.toUpperCase()
    })
  }
}
