"""Pages for API users: the reference at /docs, its OpenAPI documents, and /problems with one page per code.

The reference is Swagger UI, from the files that the offapi package carries: no browser loads anything from
another host. The policy of these pages allows our own files only. On the page of Swagger UI it also allows
data: images, because the style sheet contains its icons as such.
"""

import gzip
import hashlib
import html
import re
from collections.abc import Iterable
from functools import cache, cached_property
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from holdfast.engines.aside import run_aside
from holdfast.errors import NoSuchRoute
from holdfast.web.audiences import DOCUMENTS
from holdfast.web.openapi import documents
from holdfast.web.problems import ProblemPage
from holdfast.web.problems import list_problem_pages as problem_pages
from holdfast.web.responses import takes_packed, unchanged
from holdfast.web.routing import Route, RouteTable

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
        "img-src 'self'{images}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
STRICT = POLICY.format(images="")
REFERENCE = POLICY.format(images=" data:")
# Name here → file of the offapi package.
SWAGGER_UI = {"swagger-ui.js": "swagger_bundle.js", "swagger-ui.css": "swagger_style.css"}
SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
CODE = re.compile(r"`([^`]+)`")


class File:
    """Content that changes only with a release: a client that has it gets a 304."""

    def __init__(self, content: bytes, media_type: str, policy: str = STRICT) -> None:
        self.etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        headers = {"ETag": self.etag, "Cache-Control": "no-cache", "Content-Security-Policy": policy, **SAFE}
        headers["Vary"] = "Accept-Encoding"
        self._response = Response(content, 200, headers, media_type)

    @cached_property
    def _packed(self) -> Response:
        packed = Response(gzip.compress(bytes(self._response.body), mtime=0))
        packed.raw_headers += [
            (b"content-encoding", b"gzip"),
            *(pair for pair in self._response.raw_headers if pair[0] != b"content-length"),
        ]
        return packed

    def answer(self, request: Request) -> Response:
        return unchanged(request, self.etag) or (
            self._packed if takes_packed(request.scope) else self._response
        )


def _static() -> dict[str, File]:
    named = ((entry.name, entry.name.rsplit(".", 1)[-1], entry.read_bytes()) for entry in STATIC.iterdir())
    return {
        name: File(content, KINDS[kind], REFERENCE if name == "docs.html" else STRICT)
        for name, kind, content in named
        if kind in KINDS
    }


@cache
def swagger_ui(name: str) -> File:
    """A file of Swagger UI, read when it is first requested: most processes never serve its 1.6 MB."""
    return File(swagger_ui_file(name).read_bytes(), KINDS[name.rsplit(".", 1)[-1]])


def swagger_ui_file(name: str) -> Path:
    """Located without importing the package, whose import builds pages of 9 MB in memory."""
    spec = find_spec("offapi")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / SWAGGER_UI[name]


def _problem_files() -> dict[str, File]:
    known = problem_pages()
    shell = Template((STATIC / "problem.html").read_text())

    def page(title: str, content: str) -> File:
        text = shell.substitute(title=html.escape(title), content=content)
        return File(text.encode(), KINDS["html"])

    index = page("Problems", problem_index(known.values()))
    return {"": index, **{code: page(one.title, problem_page(one)) for code, one in known.items()}}


def problem_page(page: ProblemPage) -> str:
    paragraphs = "\n".join(f"<p>{prose(text)}</p>" for text in (page.happened, page.advice) if text)
    return (
        f'<p><span class="pill">{page.status}</span> <code>{html.escape(page.code)}</code></p>\n'
        f"<h1>{html.escape(page.title)}</h1>\n{paragraphs}\n"
        '<p class="quiet">The response that linked here contains a <code>request_id</code>. '
        "With it, the operator can find the request in the logs.</p>"
    )


def problem_index(known: Iterable[ProblemPage]) -> str:
    rows = "\n".join(
        f'<tr><td><a href="{page.type}">{html.escape(page.code)}</a></td>'
        f'<td class="status">{page.status}</td><td>{prose(page.happened)}</td></tr>'
        for page in known
    )
    return (
        "<h1>Problems</h1>\n<p>Every error that the API returns. An error is a JSON object with one of "
        "these codes; codes do not change.</p>\n"
        f'<table class="fields"><tbody>\n{rows}\n</tbody></table>'
    )


def prose(text: str) -> str:
    return CODE.sub(r"<code>\1</code>", html.escape(text, quote=False))


class Pages:
    """The pages of one application."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._static = _static()
        self._problems = _problem_files()
        self._routes = routes
        self._documents: dict[str, File] = {}  # rendered when one is wanted: a process starts sooner

    async def get_docs(self, request: Request) -> Response:
        return self._static["docs.html"].answer(request)

    async def get_docs_file(self, request: Request) -> Response:
        name = request.path_params["file"]
        if name in SWAGGER_UI:
            return swagger_ui(name).answer(request)
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
        if not self._documents:
            self._documents = await run_aside(_document_files, self._routes)
        return self._documents[request.scope["path"]].answer(request)


def _document_files(routes: Iterable[Route]) -> dict[str, File]:
    return {
        DOCUMENTS[audience].path: File(msgspec.json.encode(document), "application/json")
        for audience, document in documents(routes).items()
    }


def reference_routes(routes: Iterable[Route]) -> tuple[Route, ...]:
    """The routes that describe `routes`."""
    pages, table = Pages(routes), RouteTable(tag="docs", bare=True)
    table.get("/docs")(pages.get_docs)
    table.get("/docs/{file}")(pages.get_docs_file)
    table.get("/problems")(pages.get_problems)
    table.get("/problems/{code}")(pages.get_problem)
    for about in DOCUMENTS.values():
        table.get(about.path)(pages.get_openapi)
    return table.all
