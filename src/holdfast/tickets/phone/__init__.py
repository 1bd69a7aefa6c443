"""A ticket on a phone: a page that works without a network once it was opened (R30)."""
