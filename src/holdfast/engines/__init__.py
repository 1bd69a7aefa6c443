"""PostgreSQL and Redis clients, batches, leases, jobs, metrics, migrations and buses. Knows nothing about ticketing."""
