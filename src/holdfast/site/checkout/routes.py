"""Every page and form from a hold to a ticket: the folders beside have them."""

from holdfast.site.checkout.booking.routes import ROUTES as BOOKING
from holdfast.site.checkout.my.routes import ROUTES as MY
from holdfast.site.checkout.paying.routes import ROUTES as PAYING
from holdfast.site.checkout.yours.routes import ROUTES as YOURS

ROUTES = (*BOOKING, *PAYING, *YOURS, *MY)
