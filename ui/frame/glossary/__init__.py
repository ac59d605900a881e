"""The glossary: its terms, and how the browser gets them."""
