"""`make demo`: a controller, three agents, a book, and a machine that dies in the middle."""
