"""What tests put into the database, how they move its clock, and how they wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import attrs

from umbra_compute.db import Pool
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import ApiIdentity, ApiScope, NodeIdentity, NodeScope
from umbra_compute.model.jobs import NewJob, Prefer, Requires, Submitted
from umbra_compute.model.leases import ClaimAsk, Claimed, Held
from umbra_compute.ops import claiming, jobs
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.policy.classes import class_key
from umbra_compute.wake import Wake

STALE_S = 45.0

_TIMES = """
SELECT table_name, column_name
  FROM information_schema.columns
 WHERE table_schema = 'public' AND data_type = 'timestamp with time zone'
   AND table_name IN (SELECT table_name FROM information_schema.tables
                       WHERE table_schema = 'public' AND table_type = 'BASE TABLE')
   AND table_name NOT IN ('sweep_rounds', 'schema_migrations')
"""


@attrs.define
class World:
    """One organization on a database of its own, and what a controller keeps in memory."""

    pool: Pool
    organization_id: UUID
    catalogue: Catalogue = attrs.Factory(Catalogue)
    wake: Wake = attrs.Factory(Wake)

    @classmethod
    async def make(cls, pool: Pool) -> "World":
        return cls(pool, await an_organization(pool))

    @property
    def submitter(self) -> ApiIdentity:
        return ApiIdentity(
            organization_id=self.organization_id,
            key_id=UUID(int=1),
            key_name="test",
            scopes=frozenset({ApiScope.ADMIN}),
        )

    def new(
        self,
        kind: str = "work",
        *,
        requires: Requires | None = None,
        prefer: Prefer | None = None,
        **fields: Any,
    ) -> NewJob:
        key = class_key(
            self.organization_id,
            kind,
            Requires() if requires is None else requires,
            Prefer() if prefer is None else prefer,
        )
        if "idempotency_key" in fields:
            fields.setdefault("idempotency_hash", b"body")
        fields.setdefault("payload", "{}")
        return NewJob(organization_id=self.organization_id, class_key=key, **fields)

    async def submit(self, *new: NewJob) -> list[UUID]:
        """Store the jobs (one plain one if none is given); return their ids."""
        asked = new if new else (self.new(),)
        verdicts = await jobs.submit(self.pool, self.catalogue, self.wake, asked)
        return [v.job.id for v in verdicts if isinstance(v, Submitted)]

    async def node(self, name: str = "n1", **columns: Any) -> NodeIdentity:
        """Enrol a node that has just spoken, with one processor of 8000 MB."""
        node_id = uuid7()
        await self.pool.execute(
            """INSERT INTO compute_nodes (id, organization_id, name, status, last_heartbeat_at,
                                          max_jobs)
               VALUES ($1, $2, $3, 'online', statement_timestamp(), 100)""",
            *(node_id, self.organization_id, name),
        )
        await self.device(node_id, label="cpu", kind="cpu", ram_total_mb=8000, ram_free_mb=8000)
        await self.change_node(node_id, **columns)
        return NodeIdentity(
            organization_id=self.organization_id,
            node_id=node_id,
            credential_id=uuid4(),
            scopes=frozenset(NodeScope),
        )

    async def change_node(self, node_id: UUID, **columns: Any) -> None:
        for name, value in columns.items():
            await self.pool.execute(
                f"UPDATE compute_nodes SET {name} = $2 WHERE id = $1",  # noqa: S608
                *(node_id, value),
            )

    async def device(self, node_id: UUID, **columns: Any) -> None:
        names = ["node_id", "position", *columns]
        await self.pool.execute(
            f"INSERT INTO compute_devices ({', '.join(names)}) "  # noqa: S608
            f"VALUES ({', '.join(f'${n + 1}' for n in range(len(names)))}) "
            "ON CONFLICT (node_id, label) DO NOTHING",
            *(node_id, 0, *columns.values()),
        )

    async def no_devices(self, node_id: UUID) -> None:
        await self.pool.execute("DELETE FROM compute_devices WHERE node_id = $1", node_id)

    async def claim(self, node: NodeIdentity, **ask: Any) -> list[Claimed]:
        """Claim at once, as this controller would."""
        answer = await claiming.claim(
            self.pool, self.catalogue, node, ClaimAsk(**ask), stale_s=STALE_S
        )
        return list(answer.claimed)

    async def running(self, node: NodeIdentity, *new: NewJob, **ask: Any) -> Held:
        """Submit one job and let the node claim it."""
        await self.submit(*new)
        [claimed] = await self.claim(node, **ask)
        return held(node, claimed)

    async def status(self, job_id: UUID) -> str:
        return str(await self.pool.fetchval("SELECT status FROM jobs_shown WHERE id = $1", job_id))

    async def events(self, job_id: UUID) -> list[str]:
        rows = await self.pool.fetch(
            "SELECT event FROM job_events WHERE job_id = $1 ORDER BY id", job_id
        )
        return [row["event"] for row in rows]


def held(node: NodeIdentity, claimed: Claimed) -> Held:
    return Held(node=node, job_id=claimed.job.id, lease_id=claimed.lease_id)


async def an_organization(pool: Pool, name: str | None = None) -> UUID:
    organization_id = uuid7()
    await pool.execute(
        "INSERT INTO organizations (id, name) VALUES ($1, $2)",
        *(organization_id, str(organization_id) if name is None else name),
    )
    return organization_id


async def pass_time(pool: Pool, seconds: float) -> None:
    """The database's clock cannot be set, so its rows grow older."""
    for row in await pool.fetch(_TIMES):
        table, column = row["table_name"], row["column_name"]
        await pool.execute(
            f"UPDATE {table} SET {column} = {column} - make_interval(secs => $1)",  # noqa: S608
            seconds,
        )


async def until(condition: Callable[[], Awaitable[bool]], *, within_s: float = 10.0) -> None:
    """Wait for a condition; fail when it does not come true in time."""
    async with asyncio.timeout(within_s):
        while not await condition():
            await asyncio.sleep(0.01)


async def no_open_transaction(pool: Pool) -> None:
    """Wait until the server has noticed that a lost connection is gone."""

    async def closed() -> bool:
        return not await pool.fetchval(
            """SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database()
                              AND pid <> pg_backend_pid() AND xact_start IS NOT NULL)"""
        )

    await until(closed)
