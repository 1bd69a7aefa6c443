"""Every route of the application, in the order of the API document."""

import holdfast.accounts.admin_api
import holdfast.accounts.api
import holdfast.accounts.passkeys_api
import holdfast.accounts.people_api
import holdfast.accounts.second_factor_api
import holdfast.attendees.api
import holdfast.audit_log.api
import holdfast.bookings.api
import holdfast.catalogue.api
import holdfast.checkin.api
import holdfast.checkin.passes_api
import holdfast.holds.api
import holdfast.house.api
import holdfast.invoices.api
import holdfast.legal.api
import holdfast.notifications.api
import holdfast.notifications.demo_mailbox_api
import holdfast.organisations.api
import holdfast.organisations.api_keys_api
import holdfast.organisers.api
import holdfast.organisers.blocks_api
import holdfast.payments.api
import holdfast.privacy.api
import holdfast.refunds.api
import holdfast.refunds.approvals_api
import holdfast.replay.api
import holdfast.reports.api
import holdfast.search.api
import holdfast.seatmap.api
import holdfast.seatmap.live_api
import holdfast.site.account
import holdfast.site.after_purchase
import holdfast.site.begin
import holdfast.site.booking_page
import holdfast.site.browse
import holdfast.site.draw_page
import holdfast.site.forgotten
import holdfast.site.held_forms
import holdfast.site.legal
import holdfast.site.links
import holdfast.site.my_account
import holdfast.site.my_bookings
import holdfast.site.pages
import holdfast.site.payment
import holdfast.site.queue_page
import holdfast.site.refund_page
import holdfast.site.second_step
import holdfast.site.security
import holdfast.site.show_page
import holdfast.site.sign_in_with
import holdfast.site.waitlist_page
import holdfast.tickets.api
import holdfast.tickets.mobile_page_api
import holdfast.waitingroom.admin_api
import holdfast.waitingroom.api
import holdfast.waitingroom.stream_api
import holdfast.waitlist.api
import holdfast.waitlist.returns_api
import holdfast.webhooks_out.api
from holdfast.desk import build_desk_routes
from holdfast.web.routing import Route

SUBJECTS: tuple[Route, ...] = (
    *holdfast.holds.api.ROUTES,
    *holdfast.waitingroom.api.ROUTES,
    *holdfast.waitingroom.stream_api.ROUTES,
    *holdfast.waitlist.api.ROUTES,
    *holdfast.waitlist.returns_api.ROUTES,
    *holdfast.bookings.api.ROUTES,
    *holdfast.payments.api.ROUTES,
    *holdfast.refunds.api.ROUTES,
    *holdfast.refunds.approvals_api.ROUTES,
    *holdfast.invoices.api.ROUTES,
    *holdfast.tickets.api.ROUTES,
    *holdfast.tickets.mobile_page_api.ROUTES,
    *holdfast.checkin.api.ROUTES,
    *holdfast.seatmap.api.ROUTES,
    *holdfast.seatmap.live_api.ROUTES,
    *holdfast.catalogue.api.ROUTES,
    *holdfast.search.api.ROUTES,
    *holdfast.organisers.blocks_api.ROUTES,
    *holdfast.waitingroom.admin_api.ROUTES,
    *holdfast.checkin.passes_api.ROUTES,
    *holdfast.organisers.api.ROUTES,
    *holdfast.organisations.api.ROUTES,
    *holdfast.organisations.api_keys_api.ROUTES,
    *holdfast.house.api.ROUTES,
    *holdfast.legal.api.ROUTES,
    *holdfast.attendees.api.ROUTES,
    *holdfast.audit_log.api.ROUTES,
    *holdfast.accounts.api.ROUTES,
    *holdfast.accounts.people_api.ROUTES,
    *holdfast.accounts.second_factor_api.ROUTES,
    *holdfast.accounts.passkeys_api.ROUTES,
    *holdfast.accounts.admin_api.ROUTES,
    *holdfast.privacy.api.ROUTES,
    *holdfast.webhooks_out.api.ROUTES,
    *holdfast.reports.api.ROUTES,
    *holdfast.replay.api.ROUTES,
    *holdfast.notifications.api.ROUTES,
    *holdfast.notifications.demo_mailbox_api.ROUTES,
    *holdfast.site.pages.ROUTES,
    *holdfast.site.browse.ROUTES,
    *holdfast.site.show_page.ROUTES,
    *holdfast.site.queue_page.ROUTES,
    *holdfast.site.draw_page.ROUTES,
    *holdfast.site.waitlist_page.ROUTES,
    *holdfast.site.booking_page.ROUTES,
    *holdfast.site.payment.ROUTES,
    *holdfast.site.after_purchase.ROUTES,
    *holdfast.site.refund_page.ROUTES,
    *holdfast.site.held_forms.ROUTES,
    *holdfast.site.my_bookings.ROUTES,
    *holdfast.site.account.ROUTES,
    *holdfast.site.second_step.ROUTES,
    *holdfast.site.my_account.ROUTES,
    *holdfast.site.sign_in_with.ROUTES,
    *holdfast.site.security.ROUTES,
    *holdfast.site.forgotten.ROUTES,
    *holdfast.site.links.ROUTES,
    *holdfast.site.begin.ROUTES,
    *holdfast.site.legal.ROUTES,
)

ROUTES: tuple[Route, ...] = (*SUBJECTS, *build_desk_routes(SUBJECTS))
