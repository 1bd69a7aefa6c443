"""Builds an example of a request body from its JSON schema. No I/O.

A field's own examples come first, then its default, then the plainest value of its type. Optional fields are
left out: many exclude each other.
"""

from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

# A text by its format; any other is "text".
TEXTS = {
    "date-time": "2031-05-01T19:30:00Z",
    "date": "2031-05-01",
    "time": "19:30:00Z",
    "duration": "PT2H",
    "uuid": "5f3c9a52-6d0b-4f7e-9d1c-2f1f4b8f7c11",
    "email": "ann@example.org",
}
DEPTH_MAX = 12


@dataclass(frozen=True, slots=True)
class Examples:
    components: Json

    def of(self, schema: Json, depth: int = 0) -> Any:
        if "$ref" in schema:
            schema = self.components[schema["$ref"].rsplit("/", 1)[-1]]
        if "examples" in schema:
            return schema["examples"][0]
        for word in ("default", "const"):
            if schema.get(word) not in (None, [], {}, ""):
                return schema[word]
        if "enum" in schema:
            return schema["enum"][0]
        if "anyOf" in schema:
            # msgspec puts null last.
            return self.of(schema["anyOf"][0], depth + 1)
        return self._plain(schema, depth)

    def _plain(self, schema: Json, depth: int) -> Any:
        match schema.get("type"):
            case "object" if depth < DEPTH_MAX:
                return self._fields(schema, depth)
            case "array" if depth < DEPTH_MAX:
                return self._items(schema, depth)
            case "integer" | "number":
                return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
            case "string":
                text = TEXTS.get(schema.get("format", ""), "text")
                return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 64)]
            case "boolean":
                return True
        return None

    def _fields(self, schema: Json, depth: int) -> Json:
        # A body whose fields are all optional needs one of them: the first is the usual one.
        names = schema.get("required") or list(schema.get("properties", ()))[:1]
        return {name: self.of(schema["properties"][name], depth + 1) for name in names}

    def _items(self, schema: Json, depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.of(item, depth + 1) for item in schema["prefixItems"]]
        return [self.of(schema.get("items") or {}, depth + 1)] * max(1, schema.get("minItems", 1))
