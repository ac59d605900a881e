"""The parts of the page "What is recomputed": the run, its pictures, what is counted, the files."""
