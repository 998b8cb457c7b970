"""Processes: starting them, reading what they say, and ending all that came of them."""
