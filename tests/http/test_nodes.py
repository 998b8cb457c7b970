"""The routes for machines."""

from typing import Any
from uuid import uuid4

import pytest

from tests.http.badinput import assert_refused, variants
from tests.http.conftest import Keys
from tests.http.work import Work, work
from umbra_compute.http import wire_nodes as shapes
from umbra_compute.model.caller import ApiScope, NodeScope

__all__ = ["work"]

NODE: dict[str, Any] = {
    "name": "desk",
    "trust_domain": "office",
    "locality": "attic",
    "transport": "https",
    "is_controller": False,
    "max_jobs": 2,
    "kinds": ["a"],
}


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


async def test_bad_nodes_are_refused_and_nothing_is_stored(work: Work) -> None:
    for bad in variants(NODE, shapes.NodeBody):
        await assert_refused(work.client, "POST", "/v1/nodes", bad, headers=work.admin.headers)
    url = f"/v1/nodes/{work.node.node_id}"
    before = await work.pool.fetch("SELECT * FROM compute_nodes")
    patch = {"name": "n", "status": "offline", "locality": "x", "max_jobs": 1, "kinds": ["a"]}
    for bad in variants(patch, shapes.NodePatch):
        await assert_refused(work.client, "PATCH", url, bad, headers=work.admin.headers)
    assert await work.pool.fetch("SELECT * FROM compute_nodes") == before


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


async def test_another_tenants_node_and_a_made_up_one_get_the_same_answer_u6(
    work: Work, keys: Keys
) -> None:
    stranger = await keys.organization("other")
    bodies: dict[str, Any] = {"GET": None, "PATCH": {"status": "offline"}, "DELETE": None}
    for method, body in bodies.items():
        told = [
            await work.call(stranger, method, f"/v1/nodes/{node_id}", body)
            for node_id in (work.node.node_id, uuid4(), "no-id")
        ]
        for one in told:
            one.pop("request_id")
            one.pop("detail")  # names the id that was asked for
        assert told[0] == told[1] == told[2]
        assert (told[0]["http"], told[0]["code"]) == (404, "node_not_found")
    assert (await work.call(stranger, "GET", "/v1/nodes"))["nodes"] == []
    assert await work.pool.fetchval("SELECT status FROM compute_nodes") == "online"
