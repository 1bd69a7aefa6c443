"""Money goes back: decided in the ledger, asked of the gateway until it answers (R24, R33)."""
