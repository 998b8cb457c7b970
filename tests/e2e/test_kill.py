"""The whole thing: controllers and agents as processes, and what survives when one is killed."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fleet import Fleet, fleet
from umbra_compute.client import Client

LEASE = {"lease_seconds": 5, "drain_s": 0, "kill_grace_s": 1}


@pytest.fixture
async def running(tmp_path: Path, dsn: str) -> AsyncIterator[Fleet]:
    async with fleet(tmp_path, dsn) as started:
        yield started


async def _client(running: Fleet, url: str) -> tuple[Client, str]:
    made = await running.command("init", "--org", "acme", "--dsn", running.dsn)
    return running.client(url, made["api_key"]), made["api_key"]


async def _key(client: Client, name: str) -> str:
    node = client.add_node(name)
    return str(client.add_node_key(node["id"])["node_key"])


async def _until_complete(client: Client, ids: list[str], within_s: float = 60.0) -> list[Any]:
    async with asyncio.timeout(within_s):
        return [await asyncio.to_thread(client.wait, job_id) for job_id in ids]


async def _until_running(client: Client, job_id: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            job: dict[str, Any] = dict(await asyncio.to_thread(client.job, job_id))
            if job["status"] == "running":
                return job
            await asyncio.sleep(0.02)


async def test_work_of_a_killed_agent_is_done_by_another(running: Fleet) -> None:
    _, url = await running.controller()
    client, _ = await _client(running, url)
    first = await running.agent(url, await _key(client, "one"), "sleep 300", **LEASE)
    job_id = client.submit({"kind": "work", "payload": {"n": 1}})["id"]
    await _until_running(client, job_id)
    first.send_signal(signal.SIGKILL)
    await running.agent(url, await _key(client, "two"), "cat", **LEASE)
    [job] = await _until_complete(client, [job_id])
    assert (job["status"], job["attempt"], job["result"]) == ("complete", 2, {"n": 1})
    told = [event["event"] for event in client.events(job_id)]
    assert told == ["queued", "claimed", "lease_expired", "claimed", "completed"]


async def test_a_power_cut_on_claim_loses_nothing(running: Fleet, tmp_path: Path) -> None:
    _, url = await running.controller()
    client, _ = await _client(running, url)
    key = await _key(client, "one")
    config = tmp_path / "cut.toml"
    config.write_text(
        f'[controller]\nurl = "{url}"\n[[handler]]\nkinds = ["work"]\nargv = ["/bin/cat"]\n'
        'result = "stdout"\n'
    )
    job_id = client.submit({"kind": "work", "payload": 7})["id"]
    cut = await running.start(
        *("-m", "umbra_agent", "run", "--config", str(config), "--power-cut-on-claim"),
        UMBRA_NODE_KEY=key,
    )
    assert await cut.wait() == 137
    assert client.job(job_id)["status"] == "running"  # held by nobody who is alive
    await running.agent(url, key, "cat")  # the same node comes back as another process
    [job] = await _until_complete(client, [job_id])
    assert (job["status"], job["attempt"], job["result"]) == ("complete", 2, 7)


async def test_a_controller_killed_while_a_job_runs_goes_on_where_it_was_q15(
    running: Fleet, tmp_path: Path
) -> None:
    controller, url = await running.controller()
    client, api_key = await _client(running, url)
    runs = tmp_path / "runs"
    gate = tmp_path / "gate"
    script = f"echo run >> {runs}; while [ ! -e {gate} ]; do sleep 0.05; done; cat"
    await running.agent(url, await _key(client, "one"), script, lease_seconds=60)
    job_id = client.submit({"kind": "work", "payload": 5})["id"]
    lease_id = (await _until_running(client, job_id))["lease_id"]
    controller.send_signal(signal.SIGKILL)
    await controller.wait()
    gate.touch()
    _, url = await running.controller(url.removeprefix("http://"))
    again = running.client(url, api_key)
    [job] = await _until_complete(again, [job_id])
    assert (job["status"], job["attempt"], job["result"]) == ("complete", 1, 5)
    assert runs.read_text() == "run\n"
    assert lease_id is not None


async def test_a_restarted_controller_sweeps_without_being_asked_s27_q05(running: Fleet) -> None:
    controller, url = await running.controller()
    client, api_key = await _client(running, url)
    agent = await running.agent(url, await _key(client, "one"), "sleep 300", **LEASE)
    job_id = client.submit({"kind": "work"})["id"]
    await _until_running(client, job_id)
    for process in (controller, agent):
        process.send_signal(signal.SIGKILL)
        await process.wait()
    _, url = await running.controller()
    again = running.client(url, api_key)
    async with asyncio.timeout(40):
        while (await asyncio.to_thread(again.job, job_id))["status"] != "queued":
            await asyncio.sleep(0.1)
    assert [event["event"] for event in again.events(job_id)][-1] == "lease_expired"


async def test_a_submission_wakes_an_agent_that_waits_at_another_controller(
    running: Fleet,
) -> None:
    _, first = await running.controller()
    _, second = await running.controller()
    client, api_key = await _client(running, first)
    await running.agent(second, await _key(client, "one"), "cat", claim_wait_s=30)
    warm = client.submit({"kind": "work", "payload": 0})["id"]
    await _until_complete(client, [warm])
    ids = [client.submit({"kind": "work", "payload": n})["id"] for n in range(20)]
    elsewhere = running.client(second, api_key)
    done = await _until_complete(elsewhere, ids)
    assert [job["result"] for job in done] == list(range(20))


async def test_a_drain_lets_work_finish_and_gives_nothing_new(running: Fleet) -> None:
    _, url = await running.controller()
    client, _ = await _client(running, url)
    agent = await running.agent(url, await _key(client, "one"), "sleep 1; cat", drain_s=30)
    job_id = client.submit({"kind": "work", "payload": 1})["id"]
    await _until_running(client, job_id)
    agent.send_signal(signal.SIGTERM)
    later = client.submit({"kind": "work", "payload": 2})["id"]
    assert await agent.wait() == 0
    assert client.job(job_id)["status"] == "complete"
    assert client.job(later)["status"] == "queued"
