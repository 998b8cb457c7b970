"""A PostgreSQL for the run, databases in it, and a load that runs for a time."""

import asyncio
import secrets
import shutil
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
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import NodeIdentity, NodeScope
from umbra_compute.model.jobs import NewJob, Prefer, Requires
from umbra_compute.policy.classes import class_key

# Autovacuum is as shipped. The log is long enough that no checkpoint falls into a round.
SETTINGS: Final = {
    "shared_buffers": "1GB",
    "max_connections": "200",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
}
SQL: Final = Path(__file__).parent / "sql"

Step = Callable[[int], Awaitable[int]]
"""What worker n repeats; how many jobs that did, 0 when there are none left."""


@attrs.define
class Server:
    """Where databases are made. `close` drops those that were."""

    dsn: str
    _token: str = attrs.Factory(lambda: f"umbra_bench_{secrets.token_hex(4)}_")
    _made: list[str] = attrs.Factory(list)

    async def database(self, name: str, *, migrated: bool = True) -> str:
        """Make a database and return its DSN."""
        await self._execute(f"CREATE DATABASE {self._token}{name}")
        self._made.append(name)
        dsn = urlunsplit(urlsplit(self.dsn)._replace(path=f"/{self._token}{name}"))
        if migrated:
            await migrate.migrate(dsn)
        return dsn

    async def drop(self, name: str) -> None:
        self._made.remove(name)
        await self._execute(f"DROP DATABASE {self._token}{name} WITH (FORCE)")

    async def close(self) -> None:
        for name in list(self._made):
            await self.drop(name)

    async def version(self) -> str:
        """Return the server's version, and whether its commits are durable."""
        conn = await asyncpg.connect(self.dsn)
        try:
            version, fsync, commit = await conn.fetchrow(  # type: ignore[misc]
                "SELECT current_setting('server_version'), current_setting('fsync'), "
                "current_setting('synchronous_commit')"
            )
        finally:
            await conn.close()
        return f"{version} (fsync {fsync}, synchronous_commit {commit})"

    async def _execute(self, statement: str) -> None:
        conn = await asyncpg.connect(self.dsn)
        try:
            await conn.execute(statement, timeout=60)
        finally:
            await conn.close()


@contextmanager
def embedded_server() -> Iterator[str]:
    """Yield the DSN of a PostgreSQL of the run's own, gone with its data afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="umbra-bench-"))
    folder.chmod(0o711)
    try:
        running = embedded.start(folder / "data", settings=SETTINGS)
        try:
            yield running.dsn
        finally:
            running.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def pool_of(dsn: str, size: int) -> AsyncIterator[db.Pool]:
    async with await db.open_pool(dsn, size=size, min_size=size) as pool:
        yield pool


async def rate(workers: int, step: Step, *, for_s: float) -> float:
    """Return jobs a second of workers that each repeat `step`; ends early if nothing is left."""
    done = 0
    began = time.perf_counter()

    async def work(n: int) -> None:
        nonlocal done
        while time.perf_counter() - began < for_s:
            jobs = await step(n)
            if jobs == 0:
                return
            done += jobs

    async with asyncio.TaskGroup() as group:
        for n in range(workers):
            group.create_task(work(n))
    return done / (time.perf_counter() - began)


async def vacuum(dsn: str) -> None:
    """Do what autovacuum would have done by then to a table that is filled this fast."""
    conn = await asyncpg.connect(dsn)
    try:
        await conn.execute("VACUUM ANALYZE jobs", timeout=120)
    finally:
        await conn.close()


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


def new_job(organization_id: UUID, *, vram_min_mb: int | None = None) -> NewJob:
    requires = Requires(vram_min_mb=vram_min_mb)
    return NewJob(
        organization_id=organization_id,
        class_key=class_key(organization_id, "work", requires, Prefer()),
        payload=f'{{"n": 12345, "pad": "{"x" * 70}"}}',
    )
