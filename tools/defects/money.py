"""Refunds, payments, gateways, chargebacks and limits per card."""

from tools.defects.mutant import undo

PAYMENTS = "src/holdfast/payments"
REFUNDS = "src/holdfast/refunds/service.py"
CARDS = "tests/stores/test_card_limits.py"
CHARGEBACKS = "tests/stores/test_chargebacks.py"
POLLING = "tests/stores/test_polling.py"
ANY_AMOUNT = (
    (
        f"{PAYMENTS}/functions.sql",
        "            AS a (show_id, number, attempt, amount_minor, currency)\n"
        "       JOIN payment USING (show_id, number, attempt, amount_minor, currency);\n",
        "            AS a (show_id, number, attempt, amount_minor, currency)\n"
        "       JOIN payment USING (show_id, number, attempt);\n",
    ),
    (
        f"{PAYMENTS}/functions.sql",
        "           AND payment.amount_minor = a.amount AND payment.currency = a.currency\n",
        "",
    ),
)
NEWEST_LIMIT = (
    "AND card_limit.revision = (SELECT max(c.revision) FROM card_limit AS c WHERE c.show_id = b.show_id)"
)

MUTANTS = (
    undo(
        "the refund page refunds the tickets of its last quote, ticked or not",
        "tests/browser/test_refund_page.py -k unticking",
        (
            "src/holdfast/site/static/js/checkout_refund.js",
            '  form.addEventListener("change", requote);\n',
            "",
        ),
        (
            "src/holdfast/site/refund_page.py",
            "        seats = await _parse_seats(request, booking, data.seats)\n        if not seats:\n",
            "        named = data.quote.partition(':')[2].split(',') if data.quote else data.seats\n"
            "        seats = await _parse_seats(request, booking, named)\n        if not seats:\n",
        ),
    ),
    undo(
        "a form refunds for another quote than that of its button",
        "tests/journeys/test_site_tickets.py -k refund",
        (
            "src/holdfast/site/refund_page.py",
            "        if (quote.amount or not quote.paid) and agreed != quote_id(quote):\n",
            "        if False:\n",
        ),
    ),
    undo(
        "a refund of another amount than the buyer expects is made",
        "tests/journeys/test_refunds.py -k another_amount_than_expected",
        (
            REFUNDS,
            "            is_changed = expected_minor not in (None, page.amount)\n",
            "            is_changed = False\n",
        ),
    ),
    undo(
        "a payment cancelled too late confirms any amount",
        "tests/stores/test_tampered_amounts.py",
        (
            f"{PAYMENTS}/saga_runner.py",
            "        if charge.answer is captured and not payment.is_for(charge):\n",
            "        if charge.answer is captured and step not in CANCELS and not payment.is_for(charge):\n",
        ),
        *ANY_AMOUNT,
    ),
    undo(
        "the ledger confirms a booking for any amount",
        "tests/stores/test_payments.py -k no_other_amount",
        *ANY_AMOUNT,
    ),
    undo(
        "chargebacks are ignored",
        f"{CHARGEBACKS} -k TestChargebacks",
        (
            f"{PAYMENTS}/webhooks.py",
            "            await self._afterwards.chargebacks.refresh(payment)\n",
            "",
        ),
    ),
    undo(
        "tickets of a disputed payment stay good",
        f"{CHARGEBACKS} -k suspended",
        (
            f"{PAYMENTS}/functions_chargebacks.sql",
            "    IF p_suspends THEN\n",
            "    IF false THEN\n",
        ),
    ),
    undo(
        "the journal does not follow a chargeback",
        f"{CHARGEBACKS} -k TestChargebacks",
        (
            f"{PAYMENTS}/functions_chargebacks.sql",
            "     WHERE p_state IN ('open', 'lost');\n",
            "     WHERE false;\n",
        ),
    ),
    undo(
        "the organiser does not learn of a chargeback",
        f"{CHARGEBACKS} -k learns_of_it",
        (
            f"{PAYMENTS}/functions_chargebacks.sql",
            "    PERFORM add_fact(p_show, p_number, 'payment.disputed', jsonb_build_object(\n",
            "    PERFORM add_fact(p_show, p_number, 'payment.seen', jsonb_build_object(\n",
        ),
    ),
    undo(
        "a refund that the bank returned stays done",
        f"{CHARGEBACKS} -k TestRefundsThatFailLater",
        (
            REFUNDS,
            "            elif refund.attempt == attempt and refund.is_done_by_gateway:\n",
            "            elif False:\n",
        ),
    ),
    undo(
        "a payment under way is polled every 15 seconds",
        f"{POLLING} -k looked_up_eight_times",
        (
            f"{PAYMENTS}/saga_runner.py",
            "PAYER_PAUSES_MS = (15_000, 30_000, 60_000, 120_000, 240_000)\n",
            "PAYER_PAUSES_MS = (15_000,)\n",
        ),
    ),
    undo(
        "polls of the gateway have no budget",
        f"{POLLING} -k budget",
        (
            f"{PAYMENTS}/functions_polling.sql",
            "        v_polls := take_gateway_looks(p_gateway, v_polls, p_per_s);\n",
            "        v_polls := p_limit;\n",
        ),
    ),
    undo(
        "payers who look again use up the gateway's rate limit",
        f"{POLLING} -k payer_who_looks_again",
        (
            f"{PAYMENTS}/saga_runner.py",
            "        if await self._payments.may_look(payment):\n",
            "        if True:\n",
        ),
    ),
    undo(
        "reconciliation reads the last hour again every minute",
        f"{POLLING} -k reads_only_what_is_new",
        (
            f"{PAYMENTS}/reconciliation.py",
            'return ComparisonStart(row["began_at"] - OVERLAP, is_deep=False)\n',
            'return ComparisonStart(row["began_at"] - BACK, is_deep=False)\n',
        ),
    ),
    undo(
        "a comparison that dies blocks all later ones",
        f"{POLLING} -k dies_while_it_compares",
        (
            f"{PAYMENTS}/reconciliation.py",
            '        async with self._turns.taken(f"reconcile {self.gateway.name}", LEASE_S) as is_ours:\n'
            "            yield is_ours\n",
            "        async with self._postgres.transaction() as tx:\n"
            "            yield await tx.fetchval('SELECT pg_try_advisory_xact_lock(7)')\n",
        ),
    ),
    undo(
        "the limit of a card is not checked on the gateway's page",
        f"{CARDS} -k page",
        (
            f"{PAYMENTS}/functions.sql",
            "    PERFORM return_cards_over(p_show, p_number, p_attempt, p_card);\n",
            "",
        ),
    ),
    undo(
        "late money may exceed the limit of its card",
        f"{CARDS} -k late_money",
        (
            f"{PAYMENTS}/functions_cards.sql",
            "    PERFORM lock_cards(ARRAY[p_payment.show_id], ARRAY[p_payment.card]);\n    RETURN EXISTS (\n",
            "    RETURN false AND EXISTS (\n",
        ),
    ),
    undo(
        "the limit of a card is that of the present terms",
        f"{CARDS} -k bookings_terms",
        (
            f"{PAYMENTS}/functions.sql",
            "      JOIN card_limit ON card_limit.show_id = b.show_id AND card_limit.revision = b.revision\n"
            "     WHERE b.owner_id = p_owner[i]",
            f"      JOIN card_limit ON card_limit.show_id = b.show_id {NEWEST_LIMIT}\n"
            "     WHERE b.owner_id = p_owner[i]",
        ),
        (
            f"{PAYMENTS}/functions_cards.sql",
            " AND card_limit.revision = b.revision\n         WHERE p_card[place]",
            f" {NEWEST_LIMIT}\n         WHERE p_card[place]",
        ),
    ),
    undo(
        "repeated requests for one booking use up its card's seats",
        f"{CARDS} -k twins",
        (
            f"{PAYMENTS}/functions.sql",
            "    v_over := cards_over(p_show, p_number, p_owner, p_card, v_fit);\n",
            "    v_over := cards_over(p_show, p_number, p_owner, p_card,\n"
            "                         ARRAY(SELECT generate_subscripts(p_show, 1)));\n",
        ),
    ),
)
