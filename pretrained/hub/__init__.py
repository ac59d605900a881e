"""Downloads from the model hub, only when somebody asks."""
