"""PostgreSQL goes away and comes back; nobody restarts anything."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.conftest import FAST
from tests.e2e.fleet import fleet
from umbra_compute import embedded


async def test_an_outage_is_answered_with_503_and_survived_q14(
    scratch: Path, tmp_path: Path
) -> None:
    folder = scratch / "outage"
    server = embedded.start(folder, settings=FAST)
    try:
        async with fleet(tmp_path, server.dsn) as running:
            _, url = await running.controller()
            made = await running.command("init", "--org", "acme", "--dsn", server.dsn)
            client = running.client(url, made["api_key"])
            node = client.add_node("one")
            key = client.add_node_key(node["id"])["node_key"]
            await running.agent(url, key, "cat", lease_seconds=60)
            first = client.submit({"kind": "work", "payload": 1})["id"]
            assert (await asyncio.to_thread(client.wait, first))["result"] == 1

            server.stop()
            status, headers = await _until(url, made["api_key"], lambda s: s == 503)
            assert headers["Retry-After"] == "1"
            assert (await _ask(f"{url}/readyz", ""))[0] == 503
            assert (await _ask(f"{url}/healthz", ""))[0] == 200

            server = embedded.start(folder, settings=FAST)
            status, _ = await _until(url, made["api_key"], lambda s: s == 200)
            assert status == 200
            again = client.submit({"kind": "work", "payload": 2})["id"]
            job = await asyncio.to_thread(client.wait, again, within_s=30)
            assert (job["status"], job["attempt"], job["result"]) == ("complete", 1, 2)
    finally:
        if server.is_running:
            server.stop()


async def _until(
    url: str, api_key: str, wanted: Callable[[int], bool]
) -> tuple[int, dict[str, str]]:
    async with asyncio.timeout(20):
        while True:
            status, headers = await _ask(f"{url}/v1/queue", api_key)
            if wanted(status):
                return status, headers
            await asyncio.sleep(0.05)


async def _ask(url: str, api_key: str) -> tuple[int, dict[str, str]]:
    def ask() -> tuple[int, dict[str, str]]:
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {api_key}"})  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=15) as answer:  # noqa: S310
                return answer.status, dict(answer.headers)
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, dict(exc.headers)

    return await asyncio.to_thread(ask)
