"""What PostgreSQL itself allows here: pgbench on the least that a job table can be."""

import asyncio
from typing import Final

import asyncpg
import attrs

from bench import rig
from umbra_compute.embedded import programs

LIMIT_S: Final = 2  # short, since it is measured anew beside every load


@attrs.frozen
class Limit:
    """A script of bench/sql. `jobs`: how many one of its transactions does."""

    name: str
    script: str
    clients: int
    jobs: int
    needs_rows: bool = False


INSERT = Limit("insert, 16 clients", "insert", 16, 1)
INSERT_100 = Limit("insert 100, 4 clients", "insert_100", 4, 100)
INSERT_1000 = Limit("insert 1,000, 4 clients", "insert_1000", 4, 1000)
CLAIM_8 = Limit("claim + complete, 8 clients", "claim_complete", 8, 1, needs_rows=True)
CLAIM_32 = Limit("claim + complete, 32 clients", "claim_complete", 32, 1, needs_rows=True)
CLAIM_100 = Limit("claim + complete 100, 4 clients", "claim_complete_100", 4, 100, needs_rows=True)


@attrs.frozen
class Load:
    """Jobs are submitted or drained, `size` at a time by so many workers, beside `limit`."""

    what: str
    limit: Limit
    how: str
    size: int
    workers: int


async def prepare(server: rig.Server) -> str:
    """Make the table in a database of its own; return the DSN."""
    dsn = await server.database("limits", migrated=False)
    conn = await asyncpg.connect(dsn)
    await conn.execute((rig.SQL / "schema.sql").read_text(encoding="utf-8"))
    await conn.close()
    return dsn


async def measure(dsn: str, limit: Limit) -> float:
    """Return jobs a second."""
    conn = await asyncpg.connect(dsn)
    if limit.needs_rows:
        fill = (rig.SQL / "fill.sql").read_text(encoding="utf-8")
        await conn.execute(fill, timeout=60)
        await conn.execute("VACUUM ANALYZE least", timeout=60)
    else:
        await conn.execute("TRUNCATE least")
    await conn.close()
    return limit.jobs * await _transactions_a_second(dsn, limit)


async def _transactions_a_second(dsn: str, limit: Limit) -> float:
    # The claim's second statement is built from what the first returned: it cannot be prepared.
    process = await asyncio.create_subprocess_exec(
        programs.installed().path("pgbench"),
        *("-n", "-M", "simple" if limit.needs_rows else "prepared"),
        *("-T", str(LIMIT_S), "-c", str(limit.clients), "-j", "1"),
        *("-f", rig.SQL / f"{limit.script}.sql", dsn),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(LIMIT_S + 30):
            out, err = await process.communicate()
    except BaseException:
        process.kill()
        raise
    if process.returncode != 0:
        raise AssertionError(f"pgbench {limit.script}: {err.decode()}")
    line = next(line for line in out.decode().splitlines() if line.startswith("tps"))
    return float(line.split()[2])
