"""An example of what a JSON schema describes: its own examples where it has some, else the plainest value."""

from typing import Any

Json = dict[str, Any]

# What text looks like by its format; anything else is "text".
TEXTS = {
    "date-time": "2031-05-01T19:30:00Z",
    "date": "2031-05-01",
    "time": "19:30:00Z",
    "duration": "PT2H",
    "uuid": "5f3c9a52-6d0b-4f7e-9d1c-2f1f4b8f7c11",
    "email": "ann@example.org",
}
DEPTH_MAX = 12


def example_of(schema: Json, components: Json, depth: int = 0) -> Any:
    if "$ref" in schema:
        schema = components[schema["$ref"].rsplit("/", 1)[-1]]
    if "examples" in schema:
        return schema["examples"][0]
    for word in ("default", "const"):
        if schema.get(word) not in (None, [], {}, ""):
            return schema[word]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        # "or null" is written last; the first choice says more.
        return example_of(schema["anyOf"][0], components, depth + 1)
    return _plain(schema, components, depth)


def _plain(schema: Json, components: Json, depth: int) -> Any:
    match schema.get("type"):
        case "object" if depth < DEPTH_MAX:
            fields = schema.get("properties", {})
            return {name: example_of(field, components, depth + 1) for name, field in fields.items()}
        case "array" if depth < DEPTH_MAX:
            return _items(schema, components, depth)
        case "integer" | "number":
            return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        case "string":
            text = TEXTS.get(schema.get("format", ""), "text")
            return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 64)]
        case "boolean":
            return True
    return None


def _items(schema: Json, components: Json, depth: int) -> list[Any]:
    if "prefixItems" in schema:
        return [example_of(item, components, depth + 1) for item in schema["prefixItems"]]
    items = schema.get("items") or {}
    return [example_of(items, components, depth + 1)] * max(1, schema.get("minItems", 1))
