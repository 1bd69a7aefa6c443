"""Stripe's wire: PaymentIntents, refunds and payment methods, as far as a shop like ours uses them."""
