// Shows the OpenAPI document of the page in Swagger UI. It is in a script, because a page that was opened from
// a folder may not fetch a file beside it. Without a server there is nothing to try out.
const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = () => {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
};
dark.addEventListener("change", paint);
paint();
SwaggerUIBundle({
  spec: window.openapi,
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  supportedSubmitMethods: [],
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // the default sends the document's address to another host
});
