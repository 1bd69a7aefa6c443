"""The machinery, with no word of ticketing: connections, batches, caches, jobs, meters."""
