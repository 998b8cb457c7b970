"""The heartbeat, and what a node may ask about itself."""

from typing import Any
from uuid import uuid4

from tests.http.badinput import assert_refused, variants
from tests.http.work import Work, work
from umbra_compute.http import wire_nodes as shapes

__all__ = ["work"]

DEVICE = {
    "label": "card",
    "kind": "gpu_discrete",
    "vram_total_mb": 12000,
    "vram_free_mb": 0,
    "supports_accelerators": ["cuda"],
    "healthy": False,
    "health_reason": "lost",
}
BEAT: dict[str, Any] = {
    "agent_version": "0.1.0",
    "agent_instance_id": str(uuid4()),
    "sequence": 0,
    "heartbeat_interval_s": 20,
    "measurements": {"cpu_busy_pct": 0, "ram_free_mb": 0},
    "devices": [DEVICE],
    "resident_models": [{"slug": "a/b:c", "device": "card", "state": "loading"}],
    "active_jobs": 0,
    "leases": [{"lease_id": str(uuid4()), "vram_used_mb": 0}],
    "max_jobs": 0,
    "kinds": ["a"],
}


async def test_a_heartbeat_is_answered_and_shown(work: Work) -> None:
    told = await work.call(work.node, "POST", "/v1/node/heartbeat", BEAT)
    assert told == {
        "http": 200,
        "node_id": str(work.node.node_id),
        "status": "online",
        "heartbeat_interval_s": 20.0,
        "lost_leases": [BEAT["leases"][0]["lease_id"]],
        "cancel": [],
        "draining": False,
    }
    node = await work.call(work.node, "GET", "/v1/node")
    [device] = node["devices"]
    assert {name: device[name] for name in DEVICE} == DEVICE
    assert device["ram_total_mb"] is None
    assert node["resident_models"][0]["slug"] == "a/b:c"
    assert (node["max_jobs"], node["kinds"], node["agent_version"]) == (0, ["a"], "0.1.0")
    assert node == await work.api("GET", f"/v1/nodes/{work.node.node_id}")


async def test_a_model_may_be_named_alone(work: Work) -> None:
    beat = {**BEAT, "resident_models": ["m"], "kinds": None}
    await work.call(work.node, "POST", "/v1/node/heartbeat", beat)
    node = await work.call(work.node, "GET", "/v1/node")
    assert (node["resident_models"][0]["state"], node["kinds"]) == ("loaded", None)


async def test_what_is_said_twice_is_refused(work: Work) -> None:
    beat = {**BEAT, "devices": [DEVICE, DEVICE], "resident_models": ["m", {"slug": "m"}]}
    told = await work.call(work.node, "POST", "/v1/node/heartbeat", beat)
    assert (told["http"], told["code"]) == (422, "invalid_body")
    paths = [fault["path"] for fault in told["errors"]]
    assert paths == ["$.devices[1]", "$.resident_models[1]"]


async def test_bad_heartbeats_are_refused_and_nothing_is_stored(work: Work) -> None:
    before = await work.pool.fetch("SELECT * FROM compute_nodes")
    for bad in variants(BEAT, shapes.HeartbeatBody):
        await assert_refused(
            work.client, "POST", "/v1/node/heartbeat", bad, headers=work.node.headers
        )
    assert await work.pool.fetch("SELECT * FROM compute_nodes") == before
    assert await work.pool.fetchval("SELECT count(*) FROM node_heartbeats") == 0


async def test_every_name_said_again_is_named_and_no_first_one(work: Work) -> None:
    devices = [{**DEVICE, "label": label} for label in "aabb"]
    told = await work.call(work.node, "POST", "/v1/node/heartbeat", {**BEAT, "devices": devices})
    assert [fault["path"] for fault in told["errors"]] == ["$.devices[1]", "$.devices[3]"]


async def test_the_fastest_device_still_has_a_score(work: Work) -> None:
    device = {"label": "cpu", "kind": "cpu", "ram_free_mb": 1, "throughput_factor": 1e6}
    beat = {**BEAT, "devices": [device], "max_jobs": 1, "kinds": None}
    assert (await work.call(work.node, "POST", "/v1/node/heartbeat", beat))["http"] == 200
    await work.submit(prefer={"node": str(work.node.node_id)})
    [claimed] = await work.claim()
    assert claimed["placement"]["score"] > 1e5


async def test_when_a_model_was_last_used_is_shown(work: Work) -> None:
    beat = {**BEAT, "resident_models": [{"slug": "a", "last_used_s": 60}, "b"]}
    await work.call(work.node, "POST", "/v1/node/heartbeat", beat)
    used, unknown = (await work.call(work.node, "GET", "/v1/node"))["resident_models"]
    assert 60 <= used["last_used_s"] < 120
    assert unknown["last_used_s"] is None
