"""Nothing bad gets into the routes for keys, and each answer says where it is bad."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator

import pytest

from tests.http.badinput import Bad, assert_refused, variants
from tests.http.conftest import Caller, Client, Keys
from umbra_compute.db import Pool
from umbra_compute.http import wire
from umbra_compute.http.wire_keys import NewApiKey, NewNodeKey

API_KEY = {"name": "ci", "scopes": ["jobs:read"], "expires_in_s": 60}
NODE_KEY = {"agent_name": "desk", "scopes": ["compute:claim"], "expires_in_s": 60}


@pytest.mark.parametrize("bad", variants(API_KEY, NewApiKey), ids=str)
async def test_a_bad_api_key_is_refused_and_not_made(
    pool: Pool, client: Client, admin: Caller, bad: Bad
) -> None:
    await assert_refused(client, "POST", "/v1/keys", bad, headers=admin.headers)
    assert await pool.fetchval("SELECT count(*) FROM api_keys") == 1


@pytest.mark.parametrize(
    "bad", [bad for bad in variants(NODE_KEY, NewNodeKey) if bad.what != "nothing"], ids=str
)
async def test_a_bad_node_key_is_refused_and_not_made(
    pool: Pool, client: Client, admin: Caller, keys: Keys, bad: Bad
) -> None:
    node = await keys.node(admin.organization_id)
    url = f"/v1/nodes/{node.node_id}/credentials"
    await assert_refused(client, "POST", url, bad, headers=admin.headers)
    assert await pool.fetchval("SELECT count(*) FROM node_credentials") == 1


@pytest.mark.parametrize("route", ["/v1/keys", "/v1/nodes/{node_id}/credentials"])
@pytest.mark.parametrize(
    "asked",
    [
        ("limit=0", "limit"),
        ("limit=501", "limit"),
        ("limit=-1", "limit"),
        ("limit=1.0", "limit"),
        ("limit=%205", "limit"),
        ("limit=%D9%A5", "limit"),  # an Arabic five
        ("limit=", "limit"),
        ("limit=1&limit=2", "limit"),
        (f"limit={'9' * 5000}", "limit"),
        ("cursor=", "cursor"),
        ("cursor=abc", "cursor"),
        ("cursor=%00", "cursor"),
        ("cursor=WzFd", "cursor"),  # [1]
        ("cursor=%ED%A0%80", "cursor"),  # half a surrogate pair
        ("frob=1", "frob"),
    ],
)
async def test_a_bad_query_names_the_parameter(
    client: Client, admin: Caller, keys: Keys, route: str, asked: tuple[str, str]
) -> None:
    query, parameter = asked
    node = await keys.node(admin.organization_id)
    url = f"{route.format(node_id=node.node_id)}?{query}"
    async with client.get(url, headers=admin.headers) as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (422, "invalid_query")
    assert [fault["path"] for fault in problem["errors"]] == [parameter]


async def test_a_body_without_a_length_is_cut_at_the_limit(client: Client, admin: Caller) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(wire.LIMIT_BYTES // 65_536 + 1):
            yield b" " * 65_536

    headers = {**admin.headers, "Content-Type": "application/json"}
    async with client.post("/v1/keys", data=endless(), headers=headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (413, "too_large")


async def test_a_length_over_the_limit_is_refused_unread(client: Client, admin: Caller) -> None:
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(
        f"POST /v1/keys HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {admin.key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {wire.LIMIT_BYTES + 1}\r\n\r\n".encode()
    )
    async with asyncio.timeout(5):
        assert b" 413 " in await reader.readline()
    writer.close()


async def test_a_compressed_body_is_refused_unpacked(client: Client, admin: Caller) -> None:
    headers = {**admin.headers, "Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = gzip.compress(json.dumps(API_KEY).encode())
    async with client.post("/v1/keys", data=body, headers=headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (415, "unsupported_media_type")
