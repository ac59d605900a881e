"""The parts of the page "Generated tokens": the run, one step of it, and the sink measured."""
