"""The page "Ablate": heads switched off, what changes, and the heads ranked by it."""
