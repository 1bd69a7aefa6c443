// Shows our OpenAPI documents in Swagger UI; "Authorize" takes an access token, "Try it out" calls this server.
// From 150 open entries on, Swagger UI renders only those near the window: neither the browser's search nor a
// screen reader finds the others. Each document has fewer.
const links = [...document.querySelectorAll(".documents a")];
let shown = mark();
const reference = SwaggerUIBundle({
  url: shown,
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // the default sends the document's address to another host
});

/** Marks the document that the page's address names; returns its path. */
function mark() {
  const current = links.find((link) => link.search === location.search) ?? links[0];
  for (const link of links) link.removeAttribute("aria-current");
  current.setAttribute("aria-current", "page");
  document.getElementById("file").href = current.dataset.document;
  return current.dataset.document;
}

/** Changes the document in place: another page would forget the token. */
function show() {
  const wanted = mark();
  if (wanted === shown) return;
  shown = wanted;
  reference.specActions.updateUrl(shown);
  reference.specActions.download(shown);
}

for (const link of links) {
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in another tab or window
    event.preventDefault();
    history.pushState(null, "", link.href);
    show();
  });
}
addEventListener("popstate", show);
