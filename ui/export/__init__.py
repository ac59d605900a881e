"""Files and code that a visitor can download or copy."""
