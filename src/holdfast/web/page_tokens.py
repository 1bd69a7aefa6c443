"""The CSS custom properties that all pages share: colours, fonts and spacing, light and dark."""

from importlib import resources

_FILE = resources.files("holdfast.web") / "static" / "page_tokens.css"
PAGE_TOKENS = _FILE.read_text(encoding="utf-8")
