"""What `doctor` looks at in the database itself."""

import asyncpg

from umbra_compute.db import Conn

# Dead rows younger than the oldest of these cannot be removed: a session's snapshot or its own
# transaction, a prepared transaction that nobody ends, a standby, a replication slot that nobody
# reads. Sessions of other databases hold nothing of ours.
HORIZON = """/* health.horizon */
SELECT holder, pid, application, state, age_s, xid_age
  FROM (SELECT CASE backend_type WHEN 'walsender' THEN 'standby' ELSE 'session' END AS holder,
               pid, coalesce(application_name, '') AS application, state,
               extract(epoch FROM clock_timestamp() - xact_start)::float8 AS age_s,
               greatest(age(backend_xmin), age(backend_xid)) AS xid_age
          FROM pg_stat_activity
         WHERE coalesce(backend_xmin, backend_xid) IS NOT NULL AND pid <> pg_backend_pid()
           AND (backend_type = 'walsender'
                OR (backend_type = 'client backend' AND datname = current_database()))
        UNION ALL
        SELECT 'prepared transaction', NULL, gid, NULL,
               extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction)
          FROM pg_prepared_xacts
         WHERE database = current_database()
        UNION ALL
        SELECT 'replication slot', active_pid, slot_name, NULL, NULL, age(xmin)
          FROM pg_replication_slots
         WHERE xmin IS NOT NULL) AS holders
 ORDER BY xid_age DESC, age_s DESC NULLS FIRST
 LIMIT 1
"""

DEAD_ROWS = """/* health.dead_rows */
SELECT n_live_tup AS live, n_dead_tup AS dead FROM pg_stat_user_tables WHERE relname = 'jobs'
"""


async def horizon(conn: Conn) -> asyncpg.Record | None:
    """Return what keeps the oldest dead rows alive, None if nothing does.

    holder: session, prepared transaction, standby or replication slot; application: its name;
    age_s is None where nobody knows; xid_age: transactions begun since.
    """
    return await conn.fetchrow(HORIZON)


async def dead_rows(conn: Conn) -> asyncpg.Record | None:
    """Return (live, dead) rows of jobs by the statistics."""
    return await conn.fetchrow(DEAD_ROWS)
