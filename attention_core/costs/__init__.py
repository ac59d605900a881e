"""The cost of attention: bytes and operations by formula, and measured time."""
