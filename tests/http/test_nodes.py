"""The routes for machines and models, and the heartbeat."""

from typing import Any
from uuid import uuid4

import pytest

from tests.http.badinput import assert_refused, variants
from tests.http.conftest import Keys
from tests.http.work import Work, work
from umbra_compute.http import wire_nodes as shapes
from umbra_compute.model.caller import ApiScope, NodeScope

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
NODE: dict[str, Any] = {
    "name": "desk",
    "trust_domain": "office",
    "locality": "attic",
    "transport": "https",
    "is_controller": False,
    "max_jobs": 2,
    "kinds": ["a"],
}
MODEL: dict[str, Any] = {
    "kind": "llm",
    "vram_min_mb": 0,
    "vram_preferred_mb": 10,
    "ram_min_mb": 5,
    "requires_accelerators": ["cuda"],
    "reference_throughput": 1.5,
    "load_seconds": 0,
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


async def test_a_node_is_enrolled_changed_and_retired(work: Work) -> None:
    node = await work.api("POST", "/v1/nodes", NODE)
    assert node["http"] == 201
    assert {name: node[name] for name in NODE} == NODE
    assert (node["status"], node["running_jobs"], node["devices"]) == ("provisioning", 0, [])
    url = f"/v1/nodes/{node['id']}"
    changed = await work.api("PATCH", url, {"locality": None, "status": "draining"})
    assert (changed["locality"], changed["status"], changed["kinds"]) == (None, "draining", ["a"])
    online = await work.api("PATCH", url, {"status": "online"})
    assert (online["http"], online["code"]) == (422, "online_is_earned")
    again = await work.api("POST", "/v1/nodes", NODE)
    assert (again["http"], again["code"]) == (409, "node_name_taken")
    for _ in range(2):
        async with work.client.delete(url, headers=work.admin.headers) as answer:
            assert (answer.status, await answer.read()) == (204, b"")
    told = await work.api("PATCH", url, {"status": "offline"})
    assert (told["http"], told["code"]) == (409, "node_retired")


async def test_a_busy_node_is_not_retired(work: Work) -> None:
    await work.running()
    told = await work.api("DELETE", f"/v1/nodes/{work.node.node_id}")
    assert (told["http"], told["code"]) == (409, "node_has_leases")


async def test_nodes_are_listed_page_by_page_and_by_status(work: Work) -> None:
    for n in range(3):
        await work.api("POST", "/v1/nodes", {"name": f"n{n}"})
    first = await work.api("GET", "/v1/nodes?limit=2")
    rest = await work.api("GET", f"/v1/nodes?limit=2&cursor={first['next_cursor']}")
    names = [node["name"] for node in first["nodes"] + rest["nodes"]]
    assert names[1:] == ["n0", "n1", "n2"]
    assert rest["next_cursor"] is None
    online = await work.api("GET", "/v1/nodes?status=online")
    assert [node["id"] for node in online["nodes"]] == [str(work.node.node_id)]


@pytest.mark.parametrize("slug", ["m", "org/llm:7b-q4", "org%2Fllm%3A7b-q4", "ü ☃"])
async def test_a_models_name_may_hold_anything(work: Work, slug: str) -> None:
    put = await work.api("PUT", f"/v1/models/{slug}", MODEL)
    assert put["http"] == 201
    assert {name: put[name] for name in MODEL} == MODEL
    again = await work.api("PUT", f"/v1/models/{slug}", {})
    assert (again["http"], again["vram_min_mb"]) == (200, None)
    assert (await work.api("GET", f"/v1/models/{slug}"))["slug"] == put["slug"]
    listed = await work.api("GET", "/v1/models")
    assert [model["slug"] for model in listed["models"]] == [put["slug"]]
    assert (await work.call(work.node, "GET", "/v1/node/models"))["models"] == listed["models"]
    async with work.client.delete(f"/v1/models/{slug}", headers=work.admin.headers) as answer:
        assert answer.status == 204
    told = await work.api("DELETE", f"/v1/models/{slug}")
    assert (told["http"], told["code"]) == (404, "model_not_found")


async def test_bad_heartbeats_are_refused_and_nothing_is_stored(work: Work) -> None:
    before = await work.pool.fetch("SELECT * FROM compute_nodes")
    for bad in variants(BEAT, shapes.HeartbeatBody):
        await assert_refused(
            work.client, "POST", "/v1/node/heartbeat", bad, headers=work.node.headers
        )
    assert await work.pool.fetch("SELECT * FROM compute_nodes") == before
    assert await work.pool.fetchval("SELECT count(*) FROM node_heartbeats") == 0


async def test_bad_nodes_are_refused_and_nothing_is_stored(work: Work) -> None:
    for bad in variants(NODE, shapes.NodeBody):
        await assert_refused(work.client, "POST", "/v1/nodes", bad, headers=work.admin.headers)
    url = f"/v1/nodes/{work.node.node_id}"
    before = await work.pool.fetch("SELECT * FROM compute_nodes")
    patch = {"name": "n", "status": "offline", "locality": "x", "max_jobs": 1, "kinds": ["a"]}
    for bad in variants(patch, shapes.NodePatch):
        await assert_refused(work.client, "PATCH", url, bad, headers=work.admin.headers)
    assert await work.pool.fetch("SELECT * FROM compute_nodes") == before


async def test_bad_models_are_refused_and_nothing_is_stored(work: Work) -> None:
    for bad in variants(MODEL, shapes.ModelBody):
        await assert_refused(work.client, "PUT", "/v1/models/m", bad, headers=work.admin.headers)
    assert (await work.api("PUT", f"/v1/models/{'m' * 201}", {}))["http"] == 422
    assert await work.pool.fetchval("SELECT count(*) FROM model_registry") == 0


@pytest.mark.parametrize(
    ("method", "url", "scope"),
    [
        ("POST", "/v1/nodes", ApiScope.NODES_WRITE),
        ("PATCH", "/v1/nodes/{id}", ApiScope.NODES_WRITE),
        ("DELETE", "/v1/nodes/{id}", ApiScope.NODES_WRITE),
        ("GET", "/v1/nodes", ApiScope.NODES_READ),
        ("GET", "/v1/nodes/{id}", ApiScope.NODES_READ),
        ("PUT", "/v1/models/m", ApiScope.MODELS_WRITE),
        ("DELETE", "/v1/models/m", ApiScope.MODELS_WRITE),
        ("GET", "/v1/models", ApiScope.NODES_READ),
        ("GET", "/v1/models/m", ApiScope.NODES_READ),
        ("POST", "/v1/node/heartbeat", NodeScope.HEARTBEAT),
        ("GET", "/v1/node", NodeScope.READ),
        ("GET", "/v1/node/models", NodeScope.READ),
    ],
)
async def test_each_route_names_the_scope_that_is_missing(
    work: Work, keys: Keys, method: str, url: str, scope: ApiScope | NodeScope
) -> None:
    organization_id = work.admin.organization_id
    if isinstance(scope, ApiScope):
        others = [one for one in ApiScope if one not in (scope, ApiScope.ADMIN)]
        weak = await keys.api(organization_id, *others)
    else:
        weak = await keys.node(
            organization_id,
            node_id=work.node.node_id,
            scopes=[one for one in NodeScope if one is not scope],
        )
    told = await work.call(weak, method, url.format(id=uuid4()), {})
    assert (told["http"], told["code"]) == (403, "missing_scope")
    assert scope in told["detail"]


@pytest.mark.parametrize("query", ["limit=0", "status=busy", "cursor=x", "zz=1"])
async def test_bad_queries_are_named(work: Work, query: str) -> None:
    told = await work.api("GET", f"/v1/nodes?{query}")
    assert (told["http"], told["errors"][0]["path"]) == (422, query.split("=", maxsplit=1)[0])
