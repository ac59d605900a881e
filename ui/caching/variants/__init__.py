"""What the page "Variants" shows: one module a section, and the charts of all."""
