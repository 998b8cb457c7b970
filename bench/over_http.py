"""The product as it is used: a controller's process, called over HTTP."""

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import attrs

from bench import rig
from bench.rig import Figure

CALLERS = 32
SINGLES = 8000
BATCHED = 40_000
STARTS = 300


@attrs.define
class Site:
    """A running controller, and keys to call it with."""

    url: str
    pid: int
    api_key: str
    node_keys: list[str]
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, *, node: int | None = None) -> Any:
        """Call as the submitter, or as the n-th node."""
        key = self.api_key if node is None else self.node_keys[node]
        headers = {"Authorization": f"Bearer {key}"}
        async with self.session.post(self.url + path, json=body, headers=headers) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    def rss_mb(self) -> float:
        return rss_mb(self.pid)


def rss_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


COMMAND = [sys.executable, "-m", "umbra_compute"]


def _environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if not k.startswith("UMBRA_")}


def _init(dsn: str) -> bytes:
    return subprocess.run(
        [*COMMAND, "init", "--org", "bench", "--json", "--dsn", dsn],
        capture_output=True, check=True, env=_environment(),
    ).stdout  # fmt: skip


def _serve(dsn: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, "serve", "--listen", "127.0.0.1:0", "--dsn", dsn],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=_environment(),
    )  # fmt: skip


@asynccontextmanager
async def site(server: str) -> AsyncIterator[Site]:
    """Start a controller on a database of its own, and enrol a node with room for everything."""
    dsn = await rig.database(server, "site")
    api_key = re.search(r"umk_\w+", _init(dsn).decode())
    process = _serve(dsn)
    try:
        assert process.stdout is not None
        assert api_key is not None
        found = re.search(r"Listening on (\S+)", process.stdout.readline().decode())
        assert found is not None
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            running = Site(found[1], process.pid, api_key[0], [], session)
            for n in range(CALLERS):
                await _enrol(running, n)
            yield running
    finally:
        process.terminate()
        process.wait(20)
        if process.stdout is not None:
            process.stdout.close()


async def _enrol(running: Site, n: int) -> None:
    """Add a node with room for everything, and let it speak once."""
    node = await running.post("/v1/nodes", {"name": f"n{n}"})
    key = await running.post(f"/v1/nodes/{node['id']}/credentials", {})
    running.node_keys.append(key["node_key"])
    report = {
        "agent_version": "bench", "agent_instance_id": node["id"], "sequence": 1,
        "heartbeat_interval_s": 3600, "max_jobs": 10_000,
        "devices": [{"label": "cpu", "kind": "cpu"}],
    }  # fmt: skip
    await running.post("/v1/node/heartbeat", report, node=n)


async def measure(server: str, limits: dict[str, float]) -> list[Figure]:
    """Return rates, start latency, and the controller's memory."""
    async with site(server) as running:
        idle_mb = running.rss_mb()
        figures = [
            await _submit(running, 1, SINGLES, limits),
            await _submit(running, 100, BATCHED, limits),
            await _drain(running, 1, SINGLES, limits),
            await _drain(running, 100, BATCHED, limits),
            *await _starts(running),
        ]
        figures.append(Figure("controller, resident memory, idle", idle_mb, "MB"))
        figures.append(
            Figure("controller, resident memory, after the load", running.rss_mb(), "MB")
        )
    return figures


async def _submit(running: Site, size: int, total: int, limits: dict[str, float]) -> Figure:
    job = {"kind": "work", "payload": {"n": 12345, "pad": "x" * 70}}

    async def work(_: int) -> None:
        for _ in range(total // CALLERS // size):
            if size == 1:
                await running.post("/v1/jobs", job)
            else:
                await running.post("/v1/jobs/batch", {"jobs": [job] * size})

    took_s = await rig.seconds(lambda: rig.gather(CALLERS, work))
    done = total // CALLERS // size * size * CALLERS
    what = f"HTTP: submit, {size} at a time, {CALLERS} clients"
    return Figure(what, done / took_s, "jobs/s", limits["insert 16"], "insert 16")


async def _drain(running: Site, limit: int, total: int, limits: dict[str, float]) -> Figure:
    done = 0

    async def work(n: int) -> None:
        nonlocal done
        while done < total:
            told = await running.post("/v1/node/claim", {"limit": limit}, node=n)
            jobs = [(j["job"]["id"], j["lease"]["lease_id"]) for j in told["jobs"]]
            if not jobs:
                return
            if limit == 1:
                [(job_id, lease_id)] = jobs
                body = {"lease_id": lease_id, "result": {"ok": 1}}
                await running.post(f"/v1/node/jobs/{job_id}/complete", body, node=n)
            else:
                items = [{"job_id": j, "lease_id": lease, "result": 1} for j, lease in jobs]
                await running.post("/v1/node/complete", {"jobs": items}, node=n)
            done += len(jobs)

    clients = CALLERS if limit == 1 else 4
    took_s = await rig.seconds(lambda: rig.gather(clients, work))
    raw = "claim + complete 32" if limit == 1 else "claim + complete of 100, 4"
    what = f"HTTP: claim + complete, {limit} at a time, {clients} nodes"
    return Figure(what, done / took_s, "jobs/s", limits[raw], raw)


async def _starts(running: Site) -> list[Figure]:
    """Submit into a waiting claim; the time until the claim's answer is here."""
    while (await running.post("/v1/node/claim", {"limit": 100}, node=0))["jobs"]:
        pass  # what the drains left
    taken = []
    for _ in range(STARTS):
        async with asyncio.TaskGroup() as group:
            claim = group.create_task(running.post("/v1/node/claim", {"wait_s": 30}, node=0))
            await asyncio.sleep(0.01)  # it waits by then; one that does not yet is quicker still
            began = time.perf_counter()
            group.create_task(running.post("/v1/jobs", {"kind": "work"}))
            told = await claim
            taken.append(time.perf_counter() - began)
        [claimed] = told["jobs"]
        body = {"lease_id": claimed["lease"]["lease_id"]}
        await running.post(f"/v1/node/jobs/{claimed['job']['id']}/complete", body, node=0)
    ranked = statistics.quantiles(taken, n=100)
    return [
        Figure("HTTP: submit to start, median", ranked[49] * 1000, "ms"),
        Figure("HTTP: submit to start, 99th percentile", ranked[98] * 1000, "ms"),
    ]
