"""Token positions: rotary positions, and their scaling for longer texts."""
