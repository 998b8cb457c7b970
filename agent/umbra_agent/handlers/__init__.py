"""How jobs of a kind are run."""
