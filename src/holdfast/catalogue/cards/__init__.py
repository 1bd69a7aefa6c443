"""Events and shows as every listing tells them."""
