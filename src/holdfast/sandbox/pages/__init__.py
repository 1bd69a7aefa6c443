"""The page where a payer pays, or does whatever a test wants them to do."""
