"""Benchmarks on real processes: `make bench`. Every figure is a ratio to a reference in the same run."""
