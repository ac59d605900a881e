"""Numbers and labels as the site writes them in sentences."""
