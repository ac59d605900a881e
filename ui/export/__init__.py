"""What a visitor can download or copy: files and code."""
