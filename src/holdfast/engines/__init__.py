"""PostgreSQL and Redis clients, batches, leases, jobs, metrics, migrations, buses: no ticketing here."""
