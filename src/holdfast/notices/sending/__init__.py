"""Letters on their way: taken by turns, carried over links, each until somebody has it."""
