"""Our own wire: JSON under /v1, as small as a wire can be."""
