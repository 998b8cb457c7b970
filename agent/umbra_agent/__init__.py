"""The agent: one on each node; it and the controller share no code."""
