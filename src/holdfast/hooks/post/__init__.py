"""HTTP to a server that a stranger has named."""
