"""What all HTTP has in common: routes as data, answers, problems, keys, the API document, health."""
