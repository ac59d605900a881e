"""Where models run: in this process, or on a model server that several sites share."""
