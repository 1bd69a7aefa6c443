"""HTTP: the ASGI application, routing, authentication, responses, problems, idempotency, OpenAPI, health."""
