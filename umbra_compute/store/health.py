"""What `doctor` looks at in the database itself."""

import asyncpg

from umbra_compute.db import Conn

# What keeps dead rows alive: the oldest snapshot, prepared transaction or replication slot.
HORIZON = """/* health.horizon */
SELECT pid, coalesce(application_name, '') AS application, state,
       extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age_s
  FROM pg_stat_activity
 WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type = 'client backend'
 ORDER BY age(backend_xmin) DESC, xact_start
 LIMIT 1
"""

DEAD_ROWS = """/* health.dead_rows */
SELECT n_live_tup AS live, n_dead_tup AS dead FROM pg_stat_user_tables WHERE relname = 'jobs'
"""


async def horizon(conn: Conn) -> asyncpg.Record | None:
    """Return (pid, application, state, age_s) of the session that holds the oldest snapshot."""
    return await conn.fetchrow(HORIZON)


async def dead_rows(conn: Conn) -> asyncpg.Record | None:
    """Return (live, dead) rows of jobs by the statistics."""
    return await conn.fetchrow(DEAD_ROWS)
