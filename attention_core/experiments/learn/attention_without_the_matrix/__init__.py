"""What the page "Attention without the matrix" computes: tiles, bytes, the way back."""
