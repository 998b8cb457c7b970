"""A durable PostgreSQL for the run, databases in it, and how a figure is told."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import asyncpg
import attrs

from umbra_compute import db, embedded, migrate
from umbra_compute.embedded import programs
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import NodeIdentity, NodeScope
from umbra_compute.model.jobs import NewJob, Prefer, Requires
from umbra_compute.policy.classes import class_key

SERVER: Final = {"shared_buffers": "512MB", "max_connections": "200", "max_wal_size": "4GB"}
SQL: Final = Path(__file__).parent / "sql"
PGBENCH_S: Final = 4


@attrs.frozen
class Figure:
    """One line of the table. `limit` is the raw one of the same run that it stands beside."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    limit_name: str = ""


@contextmanager
def server() -> Iterator[str]:
    """Yield the DSN of a PostgreSQL with durable commits, as shipped but for memory."""
    folder = Path(tempfile.mkdtemp(prefix="umbra-bench-"))
    folder.chmod(0o711)
    running = embedded.start(folder / "data", settings=SERVER)
    try:
        yield running.dsn
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)


async def database(server_dsn: str, name: str, *, migrated: bool = True) -> str:
    """Make a database and return its DSN."""
    conn = await asyncpg.connect(server_dsn)
    await conn.execute(f"CREATE DATABASE {name}")
    await conn.close()
    dsn = urlunsplit(urlsplit(server_dsn)._replace(path=f"/{name}"))
    if migrated:
        await migrate.migrate(dsn)
    return dsn


@asynccontextmanager
async def pool_of(dsn: str, size: int) -> AsyncIterator[db.Pool]:
    async with await db.open_pool(dsn, size=size, min_size=size) as pool:
        yield pool


def pgbench(dsn: str, script: str, clients: int) -> float:
    """Return transactions a second of a script in bench/sql."""
    program = programs.installed().path("pgbench")
    done = subprocess.run(
        [program, "-n", "-M", "prepared" if script == "insert" else "simple", "-T", str(PGBENCH_S),
         "-c", str(clients), "-j", "1", "-f", SQL / f"{script}.sql", dsn],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = next(line for line in done.stdout.splitlines() if line.startswith("tps"))
    return float(line.split()[2])


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def organization(pool: db.Pool) -> UUID:
    organization_id = uuid7()
    await pool.execute(
        "INSERT INTO organizations (id, name) VALUES ($1, $2)",
        *(organization_id, str(organization_id)),
    )
    return organization_id


async def node(pool: db.Pool, organization_id: UUID, name: str) -> NodeIdentity:
    """Enrol a node that is online, with room for everything."""
    node_id = uuid7()
    await pool.execute(
        """INSERT INTO compute_nodes (id, organization_id, name, status, last_heartbeat_at,
                                      max_jobs, heartbeat_interval_s)
           VALUES ($1, $2, $3, 'online', now(), 10000, 3600)""",
        *(node_id, organization_id, name),
    )
    await pool.execute(
        """INSERT INTO compute_devices (node_id, label, position, kind, ram_total_mb, ram_free_mb)
           VALUES ($1, 'cpu', 0, 'cpu', 8000, 8000)""",
        node_id,
    )
    return NodeIdentity(
        organization_id=organization_id,
        node_id=node_id,
        credential_id=uuid7(),
        scopes=frozenset(NodeScope),
    )


def new_job(organization_id: UUID, kind: str = "work", priority: int = 100) -> NewJob:
    return NewJob(
        organization_id=organization_id,
        class_key=class_key(organization_id, kind, Requires(), Prefer()),
        payload=f'{{"n": 12345, "pad": "{"x" * 61}"}}',
        priority=priority,
    )


async def gather(count: int, work: Callable[[int], Awaitable[None]]) -> None:
    await asyncio.gather(*(work(n) for n in range(count)))
