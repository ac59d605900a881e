"""Faster ways to run the same model, swapped in from outside: no other module imports these."""
