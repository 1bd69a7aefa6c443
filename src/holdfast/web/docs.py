"""Pages for people who write programs: the reference at /docs, and /problems with a page for every code.

Everything comes from this package, so that it works without any other network, and the policy lets nothing
else in: no script or style but our own files, no frame around us.
"""

import hashlib
import html
import re
from collections.abc import Iterable
from importlib import resources
from string import Template

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.errors import NoSuchRoute
from holdfast.web.openapi import document
from holdfast.web.problems import Page, pages
from holdfast.web.responses import unchanged
from holdfast.web.routing import API, Route

STATIC = resources.files("holdfast.web") / "static"
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
SAFE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
CODE = re.compile(r"`([^`]+)`")


class File:
    """Content that is the same for everybody until the next release: asked for again, it costs a 304."""

    def __init__(self, content: bytes, media_type: str) -> None:
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", **SAFE}
        self._response = Response(content, 200, headers, media_type)

    def answer(self, request: Request) -> Response:
        return unchanged(request, self.etag) or self._response


def _static() -> dict[str, File]:
    named = ((entry.name, entry.name.rsplit(".", 1)[-1], entry.read_bytes()) for entry in STATIC.iterdir())
    return {name: File(content, KINDS[kind]) for name, kind, content in named if kind in KINDS}


def _problem_files() -> dict[str, File]:
    known = pages()
    shell = Template((STATIC / "problem.html").read_text())

    def page(title: str, content: str) -> File:
        text = shell.substitute(title=html.escape(title), content=content)
        return File(text.encode(), KINDS["html"])

    index = page("Problems", problem_index(known.values()))
    return {"": index, **{code: page(one.title, problem_page(one)) for code, one in known.items()}}


def problem_page(page: Page) -> str:
    paragraphs = "\n".join(f"<p>{prose(text)}</p>" for text in (page.happened, page.advice) if text)
    return (
        f'<p><span class="pill">{page.status}</span> <code>{html.escape(page.code)}</code></p>\n'
        f"<h1>{html.escape(page.title)}</h1>\n{paragraphs}\n"
        '<p class="quiet">The answer that brought you here has a <code>request_id</code>; '
        "with it, the operator finds what happened.</p>"
    )


def problem_index(known: Iterable[Page]) -> str:
    rows = "\n".join(
        f'<tr><td><a href="{page.type}">{html.escape(page.code)}</a></td>'
        f'<td class="sort">{page.status}</td><td>{prose(page.happened)}</td></tr>'
        for page in known
    )
    return (
        "<h1>Problems</h1>\n<p>Every way the box office says no. A refusal is a JSON object with one of "
        "these codes, and codes do not change.</p>\n"
        f'<table class="fields"><tbody>\n{rows}\n</tbody></table>'
    )


def prose(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))


class Pages:
    """The pages of one application; all of them are made when it starts."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._static = _static()
        self._problems = _problem_files()
        self._document = File(msgspec.json.encode(document(routes)), "application/json")

    async def get_docs(self, request: Request) -> Response:
        return self._static["docs.html"].answer(request)

    async def get_docs_file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name not in self._static or name.endswith(".html"):
            raise NoSuchRoute
        return self._static[name].answer(request)

    async def get_problems(self, request: Request) -> Response:
        return self._problems[""].answer(request)

    async def get_problem(self, request: Request) -> Response:
        if (file := self._problems.get(request.path_params["code"])) is None:
            raise NoSuchRoute
        return file.answer(request)

    async def get_openapi(self, request: Request) -> Response:
        return self._document.answer(request)


def docs_routes(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The routes that describe `routes`."""
    served = Pages(routes)
    by_path = {
        "/docs": served.get_docs,
        "/docs/{file}": served.get_docs_file,
        "/problems": served.get_problems,
        "/problems/{code}": served.get_problem,
        f"{API}/openapi.json": served.get_openapi,
    }
    return tuple(
        Route(method="GET", path=path, call=call, tag="docs", bare=True) for path, call in by_path.items()
    )
