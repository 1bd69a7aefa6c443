// Shows our OpenAPI document in Swagger UI; "Authorize" takes an access token, "Try it out" calls this server.
SwaggerUIBundle({
  url: "/api/v1/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null, // the default sends the document's address to another host
});
