"""Caches that are watched while they fill, are cropped, and are full."""
