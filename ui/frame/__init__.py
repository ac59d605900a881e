"""The frame around every page: navigation, headers, colours."""
