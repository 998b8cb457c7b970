"""What the product does on this machine, beside what PostgreSQL itself allows here."""
