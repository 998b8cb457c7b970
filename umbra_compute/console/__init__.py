"""Static assets of the web console."""
