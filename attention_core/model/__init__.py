"""The transformer around attention: its configuration, layers, positions and forms."""
