"""The transformer around attention: configuration, layers, inputs and outputs."""
