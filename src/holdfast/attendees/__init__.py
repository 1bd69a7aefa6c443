"""Organisers find bookings and attendees of their shows, by reference, name, mail or seat."""

from holdfast.attendees.errors import TooManyPeople
from holdfast.attendees.page import (
    AttendeeFilter,
    BookingDossier,
    BookingFilter,
    BookingQuery,
    FoundBooking,
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
    "SoldState",
    "TooManyPeople",
]
