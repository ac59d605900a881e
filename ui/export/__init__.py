"""What a visitor can take away: files, code, and one offline page."""
