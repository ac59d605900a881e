"""What a visitor can take away: files and code."""
