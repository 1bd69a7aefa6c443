"""The mail page of a demo: what would have been sent, for whoever looks. Never where mail is sent (R29)."""
