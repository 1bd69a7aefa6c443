"""The gateway's books held against ours."""
