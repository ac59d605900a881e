"""Training of this repository's small models."""
