"""The glossary: its terms, and the scripts that explain them in the browser."""
