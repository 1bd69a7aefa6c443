"""Organisers find bookings and attendees of their shows, by reference, name, mail or seat."""

from holdfast.attendees.errors import TooManyPeople
from holdfast.attendees.every_pod import search_bookings
from holdfast.attendees.page import (
    AttendeeFilter,
    BookingDossier,
    BookingFilter,
    BookingQuery,
    FoundBooking,
    FoundBookings,
    SoldState,
)
from holdfast.attendees.store import AttendeeStore

__all__ = [
    "AttendeeFilter",
    "AttendeeStore",
    "BookingDossier",
    "BookingFilter",
    "BookingQuery",
    "FoundBooking",
    "FoundBookings",
    "SoldState",
    "TooManyPeople",
    "search_bookings",
]
