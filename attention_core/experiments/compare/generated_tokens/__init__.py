"""Where each generated token looked."""
