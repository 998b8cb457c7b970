"""Submit, claim and complete over HTTP, and how soon a job starts on a node that waits."""

import asyncio
import statistics
import time
from typing import Final

from bench import limits, rig
from bench.figures import Figure
from bench.limits import Load
from bench.site import Site

STARTS: Final = 400
JOB: Final = {"kind": "work", "payload": {"n": 12345, "pad": "x" * 70}}

LOADS: Final = (
    Load("submit, one by one, 32 clients", limits.INSERT, "submit", 1, 32),
    Load("submit 100 at a time, 4 clients", limits.INSERT_100, "submit", 100, 4),
    Load("submit 1,000 at a time, 4 clients", limits.INSERT_1000, "submit", 1000, 4),
    Load("claim + complete, one by one, 32 nodes", limits.CLAIM_32, "drain", 1, 32),
    Load("claim + complete 100 at a time, 4 nodes", limits.CLAIM_100, "drain", 100, 4),
)
"""Submissions leave what is drained."""


async def run(site: Site, how: str, size: int, clients: int, for_s: float) -> float:
    """Return jobs a second."""
    if how == "drain":
        await rig.vacuum(site.dsn)
        return await rig.rate(clients, lambda n: _drain(site, n, size), for_s=for_s)
    return await rig.rate(clients, lambda _: _submit(site, size), for_s=for_s)


async def _submit(site: Site, size: int) -> int:
    if size == 1:
        await site.post("/v1/jobs", JOB)
        return 1
    told = await site.post("/v1/jobs/batch", {"jobs": [JOB] * size})
    return len(told["jobs"])


async def _drain(site: Site, n: int, limit: int) -> int:
    told = await site.post("/v1/node/claim", {"limit": limit}, node=n)
    held = [(one["job"]["id"], one["lease"]["lease_id"]) for one in told["jobs"]]
    if limit == 1 and held:
        [(job_id, lease_id)] = held
        body = {"lease_id": lease_id, "result": {"ok": 1}}
        await site.post(f"/v1/node/jobs/{job_id}/complete", body, node=n)
    elif held:
        items = [{"job_id": j, "lease_id": lease, "result": {"ok": 1}} for j, lease in held]
        answer = await site.post("/v1/node/complete", {"jobs": items}, node=n)
        assert all(one["status"] == "complete" for one in answer["jobs"]), answer
    return len(held)


async def starts(site: Site) -> list[Figure]:
    """Submit into a waiting claim; the time until the claim's answer is here."""
    while await _drain(site, 0, 100):
        pass  # what the loads left
    taken = []
    for _ in range(STARTS):
        async with asyncio.TaskGroup() as group:
            claim = group.create_task(site.post("/v1/node/claim", {"wait_s": 30}, node=0))
            await asyncio.sleep(0.02)  # it waits by then; one that does not yet starts no sooner
            assert not claim.done(), "a claim was answered before anything was submitted"
            began = time.perf_counter()
            group.create_task(site.post("/v1/jobs", {"kind": "work"}))
            told = await claim
            taken.append(time.perf_counter() - began)
        [claimed] = told["jobs"]
        body = {"lease_id": claimed["lease"]["lease_id"]}
        await site.post(f"/v1/node/jobs/{claimed['job']['id']}/complete", body, node=0)
    ranked = statistics.quantiles(taken, n=100)
    return [
        Figure(f"submit to start over HTTP, median of {STARTS}", ranked[49] * 1000, "ms"),
        Figure("submit to start over HTTP, 99th percentile", ranked[98] * 1000, "ms"),
    ]
