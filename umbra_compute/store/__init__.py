"""Statements: one function runs one, on a connection that its caller gives it.

Each opens with its name in a comment, which pg_stat_activity and the server's log show.
JSON goes in and out as text; nothing here reads it.
"""
