"""Screenshots of the pages, and the scripts that take them."""
