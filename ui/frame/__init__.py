"""The frame around every page: navigation, style sheet, scripts and glossary."""
