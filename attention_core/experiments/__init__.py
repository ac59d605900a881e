"""What the pages show of the core, one module or folder for each page, by section."""
