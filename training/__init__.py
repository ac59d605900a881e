"""The small models that are trained in this repository."""
