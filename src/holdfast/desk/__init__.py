"""The desk: pages for the work of organisers, door staff and administrators (R31–R33).

Rendered on the server like the site's, and every page works without scripts. A page names the routes of the
API that do the same, and needs the rights that those declare.

access.py   who is signed in, for which organisation, with which rights; frame.py renders
home.py, show_page.py, cancel_page.py, chart.py    shows, sales and plots; cancelling a show
bookings.py, booking_refund.py, timeline.py        finding a booking, refunding tickets
refunds.py, proposals.py, blocks.py, door.py       refunds by hand and by two people, blocks, passes
team.py, settings.py, webhooks.py, keys.py, audit_log.py   the organisation
house.py, accounts.py                              the whole house, for administrators
pages.py    every page of the desk, as routes
"""

from holdfast.desk.pages import DESK_PAGES, build_desk_routes

__all__ = ["DESK_PAGES", "build_desk_routes"]
