"""Faster ways to run the same models; no other module of the core imports these."""
