"""The website for fans: pages rendered on the server, and small scripts that make them quicker (R2–R30).

Every page works without its scripts. A form is a plain POST that is answered with a redirect;
scripts send the same form. Nothing is loaded from other hosts, and no inline script runs.

cookies.py        session cookie, language, same origin     i18n.py      texts, money and dates by locale
templates_env.py  templates, catalogues, static files      pages.py     renders pages, reads forms, sessions
browse.py, search_page.py, show_page.py                    browsing, searching, choosing seats
booking_page.py, payment.py, held_forms.py                 one booking: checkout, payment, two holds
after_purchase.py, refund_page.py                          tickets, transfers, refunds
my_bookings.py, account.py, crawlers.py                    all bookings; sign-in; robots, sitemap, JSON-LD
"""
