"""The glossary: its terms, their pictures, and how the browser gets both."""
