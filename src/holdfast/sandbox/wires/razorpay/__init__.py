"""Razorpay's wire: orders, payments and refunds, as far as a shop like ours uses them."""
