"""The product as it is used: a controller's process, with keys to call it over HTTP."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import attrs

from bench import rig

NODES: Final = 32
COMMAND: Final = (sys.executable, "-m", "umbra_compute")
START_S: Final = 30


@attrs.define
class Site:
    """A running controller, and keys to call it with."""

    dsn: str
    url: str
    pid: int
    api_key: str
    session: aiohttp.ClientSession
    node_keys: list[str] = attrs.Factory(list)

    async def post(self, path: str, body: Any, *, node: int | None = None) -> Any:
        """Call as the submitter, or as the n-th node."""
        return await self._call("POST", path, body, self._key(node))

    async def get(self, path: str) -> Any:
        return await self._call("GET", path, None, self.api_key)

    def _key(self, node: int | None) -> str:
        return self.api_key if node is None else self.node_keys[node]

    async def _call(self, method: str, path: str, body: Any, key: str) -> Any:
        headers = {"Authorization": f"Bearer {key}"}
        async with self.session.request(
            method, self.url + path, json=body, headers=headers
        ) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()


def rss_mb(pid: int) -> float:
    """Return what the process holds in memory now."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without settings of the product, and `more`."""
    return {k: v for k, v in os.environ.items() if not k.startswith("UMBRA_")} | more


@asynccontextmanager
async def site(server: rig.Server) -> AsyncIterator[Site]:
    """Start a controller on a database of its own, and enrol nodes with room for everything."""
    dsn = await server.database("site")
    made = json.loads(await _output("init", "--org", "bench", "--json", "--dsn", dsn))
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *("serve", "--listen", "127.0.0.1:0", "--dsn", dsn),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, env=environment(),
    )  # fmt: skip
    try:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:
            running = Site(dsn, await _address(process), process.pid, made["api_key"], session)
            for n in range(NODES):
                await _enrol(running, n)
            yield running
    finally:
        await stop(process)


async def stop(process: Process) -> None:
    """End a process that may have ended by itself."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(20):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _address(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(START_S):
        line = (await process.stdout.readline()).decode()
    assert line.startswith("Listening on "), f"serve said {line!r}"
    return line.split()[2]


async def _output(*words: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *words, stdout=asyncio.subprocess.PIPE, env=environment()
    )
    async with asyncio.timeout(START_S):
        out, _ = await process.communicate()
    assert process.returncode == 0
    return out


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
