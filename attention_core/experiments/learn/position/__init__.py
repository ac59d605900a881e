"""What the page "Position" shows: order, tables of positions, rotations, and longer texts."""
