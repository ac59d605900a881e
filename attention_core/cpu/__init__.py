"""How a CPU computes what a model asks for."""
