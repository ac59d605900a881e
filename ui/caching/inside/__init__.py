"""The parts of the page "Inside the cache": the watched run, its pictures, crop, a full cache."""
