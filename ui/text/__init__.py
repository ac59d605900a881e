"""Numbers as the site writes them in sentences."""
