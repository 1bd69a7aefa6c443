"""Whether jobs that work on bookings and sales have something to do."""

from holdfast.engines.postgres import Queries

Q = Queries("holdfast.bookings", "due")
LAPSED_DUE = Q.lapsed
STALE_MAPS_DUE = Q.stale_maps
CANCELLED_SHOWS_DUE = Q.cancelled_shows
