"""What attention costs: bytes and operations by formula, and time by the clock."""
