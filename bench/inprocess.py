"""The operations without HTTP: submit, claim and complete on connections of this process."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

import attrs

from bench import limits, rig
from bench.limits import Load
from umbra_compute import db
from umbra_compute.coalesce import Coalescer
from umbra_compute.model.caller import NodeIdentity
from umbra_compute.model.jobs import NewJob, Submitted
from umbra_compute.model.leases import ClaimAsk, Completion, Ended, Held
from umbra_compute.ops import claiming, jobs, leases
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.wake import Wake

STALE_S: Final = 3600.0
CALLERS: Final = 32  # of single submissions, on the controller's 16 connections

LOADS: Final = (
    Load("submit, one by one, 32 callers", limits.INSERT, "submit", 1, CALLERS),
    Load("submit 100 at a time, 4 callers", limits.INSERT_100, "submit", 100, 4),
    Load("submit 1,000 at a time, 4 callers", limits.INSERT_1000, "submit", 1000, 4),
    Load("claim + complete, one by one, 8 nodes", limits.CLAIM_8, "drain", 1, 8),
    Load("claim + complete 100 at a time, 4 nodes", limits.CLAIM_100, "drain", 100, 4),
)
"""Submissions leave what is drained."""


@attrs.frozen
class World:
    """One organization with nodes, and what a controller keeps in memory."""

    dsn: str
    pool: db.Pool
    organization_id: UUID
    nodes: list[NodeIdentity]
    catalogue: Catalogue = attrs.Factory(Catalogue)
    wake: Wake = attrs.Factory(Wake)

    async def run(self, how: str, size: int, workers: int, for_s: float) -> float:
        """Return jobs a second."""
        if how == "drain":
            await rig.vacuum(self.dsn)
            return await rig.rate(workers, lambda n: self._drain(n, size), for_s=for_s)
        submit: Coalescer[NewJob, Submitted] = Coalescer(
            lambda items: jobs.submit(self.pool, self.catalogue, self.wake, items)
        )
        new = rig.new_job(self.organization_id)

        async def one(_: int) -> int:
            await submit(new)
            return 1

        async def many(_: int) -> int:
            return len(await jobs.submit_all(self.pool, self.catalogue, self.wake, [new] * size))

        return await rig.rate(workers, one if size == 1 else many, for_s=for_s)

    async def _drain(self, n: int, limit: int) -> int:
        node = self.nodes[n]
        answer = await claiming.claim(
            self.pool, self.catalogue, node, ClaimAsk(limit=limit), stale_s=STALE_S
        )
        result = json.dumps({"ok": 1})
        done = [
            Completion(held=Held(node=node, job_id=c.job.id, lease_id=c.lease_id), result=result)
            for c in answer.claimed
        ]
        verdicts = await leases.complete(self.pool, self.wake, done) if done else []
        assert all(isinstance(verdict, Ended) for verdict in verdicts), verdicts
        return len(verdicts)


@asynccontextmanager
async def world(server: rig.Server) -> AsyncIterator[World]:
    dsn = await server.database("inprocess")
    async with rig.pool_of(dsn, 16) as pool:
        organization_id = await rig.organization(pool)
        nodes = [await rig.node(pool, organization_id, f"n{n}") for n in range(8)]
        yield World(dsn, pool, organization_id, nodes)
