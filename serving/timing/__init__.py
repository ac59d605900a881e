"""How long generation takes with a cache and without: what is timed, and the measurement."""
