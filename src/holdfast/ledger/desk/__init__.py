"""What the organisers' desk asks of the ledger, as part of a transaction of its own (R33)."""
