"""Routes for keys: made once, shown once, listed without secrets, ended for good."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.http.conftest import Caller, Client, Keys
from umbra_compute.db import Pool
from umbra_compute.model.caller import ApiScope, NodeScope

NOBODY = UUID("01a23206-794a-76b9-9e8a-03c4494abaa0")
"""An id that nothing has; a fixed one, so that every worker collects the same tests."""


async def call(
    client: Client, caller: Caller, method: str, url: str, body: Any = None
) -> tuple[int, Any]:
    async with client.request(method, url, json=body, headers=caller.headers) as answer:
        return answer.status, await answer.json() if answer.status != 204 else None


async def test_a_new_api_key_works_and_is_shown_once(
    pool: Pool, client: Client, admin: Caller
) -> None:
    wanted = {"name": "ci", "scopes": ["keys:write", "jobs:read"], "expires_in_s": 3600}
    status, made = await call(client, admin, "POST", "/v1/keys", wanted)
    assert status == 201
    assert (made["name"], made["scopes"]) == ("ci", ["jobs:read", "keys:write"])
    assert made["api_key"].startswith(made["key_prefix"] + "_")
    new = Caller(admin.organization_id, made["id"], made["api_key"])
    status, listed = await call(client, new, "GET", "/v1/keys")
    assert (status, [key["name"] for key in listed["keys"]]) == (200, ["ci", "admin"])
    assert "api_key" not in listed["keys"][0]
    kept = str(await pool.fetch("SELECT * FROM api_keys"))
    assert made["api_key"] not in kept
    assert made["api_key"].rpartition("_")[2] not in kept


async def test_a_new_node_key_has_all_four_scopes_unless_told(
    client: Client, admin: Caller, keys: Keys
) -> None:
    node = await keys.node(admin.organization_id)
    url = f"/v1/nodes/{node.node_id}/credentials"
    async with client.post(url, headers=admin.headers) as answer:  # no body at all
        assert answer.status == 201
        made = await answer.json()
    assert made["scopes"] == [scope.value for scope in NodeScope]
    assert (made["node_id"], made["expires_at"]) == (str(node.node_id), None)
    assert made["node_key"].startswith(made["key_prefix"])
    status, made = await call(client, admin, "POST", url, {"scopes": ["compute:read"]})
    assert (status, made["scopes"]) == (201, ["compute:read"])


@pytest.mark.parametrize(
    ("held", "wanted", "status"),
    [
        (["keys:write"], ["keys:write"], 201),
        (["keys:write", "jobs:read"], ["jobs:read"], 201),
        (["keys:write"], ["jobs:read"], 403),
        (["keys:write"], ["admin"], 403),
        (["keys:write", "jobs:read"], ["jobs:read", "jobs:write"], 403),
        (["admin"], [scope.value for scope in ApiScope], 201),
    ],
)
async def test_nobody_gives_a_key_more_than_they_hold(
    client: Client, admin: Caller, keys: Keys, held: list[str], wanted: list[str], status: int
) -> None:
    maker = await keys.api(admin.organization_id, *map(ApiScope, held))
    got, told = await call(client, maker, "POST", "/v1/keys", {"name": "k", "scopes": wanted})
    assert got == status
    if status == 403:
        assert told["code"] == "scope_not_held"
        assert any(scope in told["detail"] for scope in set(wanted) - set(held))


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 500])
async def test_pages_show_each_key_once_newest_first(
    client: Client, admin: Caller, keys: Keys, limit: int
) -> None:
    node = await keys.node(admin.organization_id)
    for _ in range(3):
        await keys.node(admin.organization_id, node_id=node.node_id)
        await keys.api(admin.organization_id, ApiScope.JOBS_READ)
    for url, name in [
        ("/v1/keys", "keys"),
        (f"/v1/nodes/{node.node_id}/credentials", "credentials"),
    ]:
        seen: list[str] = []
        cursor = ""
        while True:
            _, page = await call(client, admin, "GET", f"{url}?limit={limit}{cursor}")
            assert len(page[name]) <= limit
            seen += [key["created_at"] for key in page[name]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert seen == sorted(set(seen), reverse=True)
        assert len(seen) == 4


async def test_a_key_is_ended_once_and_again_without_harm(
    pool: Pool, client: Client, admin: Caller, keys: Keys
) -> None:
    node = await keys.node(admin.organization_id)
    other = await keys.api(admin.organization_id, ApiScope.JOBS_READ)
    for url in (f"/v1/keys/{other.id}", f"/v1/nodes/{node.node_id}/credentials/{node.id}"):
        for _ in range(2):
            assert (await call(client, admin, "DELETE", url))[0] == 204
    assert await pool.fetchval("SELECT value FROM credential_version") == 2
    _, listed = await call(client, admin, "GET", "/v1/keys")
    assert [key["revoked_at"] is None for key in listed["keys"]] == [False, True]


async def test_a_key_may_end_itself(client: Client, admin: Caller) -> None:
    assert (await call(client, admin, "DELETE", f"/v1/keys/{admin.id}"))[0] == 204


async def test_another_tenants_things_and_made_up_ones_are_the_same_404(
    pool: Pool, client: Client, admin: Caller, keys: Keys
) -> None:
    stranger = await keys.organization("stranger")
    node = await keys.node(stranger.organization_id)
    mine = await keys.node(admin.organization_id)
    before = await pool.fetch("SELECT * FROM api_keys, node_credentials")
    for method, url, code in [
        ("POST", "/v1/nodes/{node}/credentials", "node_not_found"),
        ("GET", "/v1/nodes/{node}/credentials", "node_not_found"),
        ("DELETE", "/v1/nodes/{node}/credentials/{credential}", "credential_not_found"),
        ("DELETE", f"/v1/nodes/{mine.node_id}/credentials/{{credential}}", "credential_not_found"),
        ("DELETE", "/v1/keys/{key}", "key_not_found"),
    ]:
        body: Any = {} if method == "POST" else None
        for ids in (
            {"node": node.node_id, "credential": node.id, "key": stranger.id},
            {"node": uuid4(), "credential": uuid4(), "key": uuid4()},
        ):
            status, told = await call(client, admin, method, url.format(**ids), body)
            assert (status, told["code"]) == (404, code)
    _, listed = await call(client, admin, "GET", "/v1/keys")
    assert [key["id"] for key in listed["keys"]] == [str(admin.id)]
    assert await pool.fetch("SELECT * FROM api_keys, node_credentials") == before


@pytest.mark.parametrize("no_id", ["x", "1", "urn:uuid:{}", "{}0", "%7B{}%7D", "%00"])
async def test_an_id_that_is_none_is_an_unknown_one(
    client: Client, admin: Caller, no_id: str
) -> None:
    url = f"/v1/keys/{no_id.format(admin.id)}"
    status, told = await call(client, admin, "DELETE", url)
    assert status == 404
    assert told["code"] == ("not_found" if "%" in no_id else "key_not_found")


async def test_a_retired_node_gets_no_key(
    pool: Pool, client: Client, admin: Caller, keys: Keys
) -> None:
    node = await keys.node(admin.organization_id)
    await pool.execute("UPDATE compute_nodes SET status = 'retired'")
    url = f"/v1/nodes/{node.node_id}/credentials"
    status, told = await call(client, admin, "POST", url, {})
    assert (status, told["code"]) == (409, "node_retired")


@pytest.mark.parametrize(
    ("method", "url", "scope"),
    [
        ("POST", "/v1/keys", "keys:write"),
        ("GET", "/v1/keys", "keys:write"),
        ("DELETE", f"/v1/keys/{NOBODY}", "keys:write"),
        ("POST", f"/v1/nodes/{NOBODY}/credentials", "nodes:write"),
        ("GET", f"/v1/nodes/{NOBODY}/credentials", "nodes:write"),
        ("DELETE", f"/v1/nodes/{NOBODY}/credentials/{NOBODY}", "nodes:write"),
    ],
)
async def test_each_route_asks_for_its_scope(
    client: Client, admin: Caller, keys: Keys, method: str, url: str, scope: str
) -> None:
    others = [word for word in ApiScope if word not in (scope, ApiScope.ADMIN)]
    weak = await keys.api(admin.organization_id, *others)
    status, told = await call(client, weak, method, url, {})
    assert (status, told["code"]) == (403, "missing_scope")
    assert scope in told["detail"]
    async with client.request(method, url) as answer:
        assert answer.status == 401
