"""Where models run: in this process, or on a server of their own that several sites share."""
