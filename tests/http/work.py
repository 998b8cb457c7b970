"""A node at work, over HTTP."""

from typing import Any

import attrs
import pytest

from tests.http.conftest import Caller, Client, Keys
from umbra_compute.db import Pool


@attrs.frozen
class Work:
    """An organization with one node online, and calls as a submitter and as that node."""

    pool: Pool
    client: Client
    admin: Caller
    node: Caller

    async def submit(self, **body: Any) -> dict[str, Any]:
        told = await self.api("POST", "/v1/jobs", {"kind": "work", **body})
        assert told["status"] == "queued"
        return told

    async def claim(self, **body: Any) -> list[dict[str, Any]]:
        told = await self.call(self.node, "POST", "/v1/node/claim", body)
        jobs: list[dict[str, Any]] = told["jobs"]
        return jobs

    async def running(self, **body: Any) -> tuple[str, str]:
        """Submit a job and let the node claim it; return (job id, lease id)."""
        await self.submit(**body)
        [claimed] = await self.claim()
        return claimed["job"]["id"], claimed["lease"]["lease_id"]

    async def api(self, method: str, url: str, body: Any = None) -> dict[str, Any]:
        return await self.call(self.admin, method, url, body)

    async def call(self, caller: Caller, method: str, url: str, body: Any = None) -> dict[str, Any]:
        """Return the answer; its HTTP status is in it as `http`."""
        sent = {} if body is None else {"json": body}
        async with self.client.request(method, url, headers=caller.headers, **sent) as answer:
            told: dict[str, Any] = await answer.json(content_type=None)
            return {**told, "http": answer.status}


async def at_work(pool: Pool, client: Client, admin: Caller, keys: Keys) -> Work:
    node = await keys.node(admin.organization_id)
    await pool.execute(
        """UPDATE compute_nodes SET status = 'online', last_heartbeat_at = statement_timestamp(),
                  max_jobs = 100"""
    )
    await pool.execute(
        """INSERT INTO compute_devices (node_id, label, position, kind, ram_total_mb, ram_free_mb)
           VALUES ($1, 'cpu', 0, 'cpu', 8000, 8000)""",
        node.node_id,
    )
    return Work(pool, client, admin, node)


@pytest.fixture
async def work(pool: Pool, client: Client, admin: Caller, keys: Keys) -> Work:
    return await at_work(pool, client, admin, keys)
