"""Pages to come."""

from holdfast.web.routing import Route

ROUTES: tuple[Route, ...] = ()
