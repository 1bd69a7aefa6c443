"""Other ticketing systems on this machine, under the same load as Holdfast: `python -m bench.peers`."""
