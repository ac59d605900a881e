"""Where a token stands: rotary positions and their scalings for texts beyond the trained length."""
