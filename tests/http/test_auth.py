"""Who is let in, and what that costs."""

import asyncio
from collections.abc import Callable
from typing import Any

import argon2
import asyncpg
import attrs
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient
from pytest_aiohttp.plugin import AiohttpClient

from tests.http.conftest import Caller, Client, Keys, Server
from umbra_compute import app as wiring
from umbra_compute.db import Pool
from umbra_compute.errors import RateLimited
from umbra_compute.http import attempts, auth, authenticator, context, wire
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import ApiScope, NodeScope
from umbra_compute.ops import credentials
from umbra_compute.ops.hashing import PROFILE, Hasher


class CountingHasher(Hasher):
    """Counts what it verifies."""

    verified = 0

    async def verify(self, key_hash: str, key: str) -> bool:
        self.verified += 1
        return await super().verify(key_hash, key)


@pytest.fixture
def hasher() -> Any:
    hasher = CountingHasher(argon2.profiles.CHEAPEST)
    yield hasher
    hasher.close()


@pytest.fixture
async def client(app: web.Application, aiohttp_client: AiohttpClient) -> Client:
    """With a route for nodes and one for people, which answer with who called."""
    routes = web.RouteTableDef()

    @routes.get("/v1/as-node")
    async def as_node(request: web.Request) -> web.Response:
        caller = await auth.node(request, NodeScope.CLAIM)
        return wire.reply({"id": caller.node_id, "organization_id": caller.organization_id})

    @routes.get("/v1/as-program")
    async def as_program(request: web.Request) -> web.Response:
        caller = await auth.api(request, ApiScope.JOBS_READ)
        return wire.reply({"id": caller.key_id, "organization_id": caller.organization_id})

    app.add_routes(routes)
    return await aiohttp_client(Server(app))


async def ask(client: TestClient[Any, Any], path: str, key: str) -> tuple[int, dict[str, Any]]:
    async with client.get(path, headers={"Authorization": f"Bearer {key}"}) as answer:
        return answer.status, await answer.json()


async def refused(client: Client, path: str, key: str) -> str:
    status, problem = await ask(client, path, key)
    assert status >= 400
    return str(problem["code"])


@pytest.fixture
async def node(keys: Keys, admin: Caller) -> Caller:
    return await keys.node(admin.organization_id)


async def test_a_key_says_who_calls_and_of_which_organization(
    client: Client, node: Caller, admin: Caller
) -> None:
    status, told = await ask(client, "/v1/as-node", node.key)
    assert (status, told["id"]) == (200, str(node.node_id))
    status, told = await ask(client, "/v1/as-program", admin.key)
    assert (status, told["organization_id"]) == (200, str(admin.organization_id))


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic dTpw",
        "Bearer umk_abc",
        "Bearer umk_aaaaaaaaaaaa_" + "a" * 52,
        "Bearer umn_aaaaaaaaaaaa_" + "a" * 52,
        "Bearer " + "x" * 5000,
        "umk_aaaaaaaaaaaa_" + "a" * 52,
    ],
    ids=lambda header: header[:24],
)
async def test_no_key_and_an_unknown_key_get_the_same_answer(
    client: Client, hasher: CountingHasher, header: str
) -> None:
    async with client.get("/v1/as-node", headers={"Authorization": header}) as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert hasher.verified == 0


async def test_two_authorization_headers_are_none(client: Client, admin: Caller) -> None:
    twice = [("Authorization", f"Bearer {admin.key}")] * 2
    async with client.get("/v1/as-program", headers=twice) as answer:
        assert answer.status == 401


async def test_the_scheme_is_read_in_any_case(client: Client, admin: Caller) -> None:
    header = {"Authorization": f"bEARER {admin.key}"}
    async with client.get("/v1/as-program", headers=header) as answer:
        assert answer.status == 200


async def test_a_key_in_the_wrong_place_is_told_the_scope_it_lacks(
    client: Client, keys: Keys, admin: Caller, node: Caller
) -> None:
    weak = await keys.api(admin.organization_id, ApiScope.NODES_READ, ApiScope.JOBS_WRITE)
    mute = await keys.node(admin.organization_id, scopes=[NodeScope.HEARTBEAT])
    for path, key, scope in [
        ("/v1/as-node", admin.key, "compute:claim"),
        ("/v1/as-node", mute.key, "compute:claim"),
        ("/v1/as-program", node.key, "jobs:read"),
        ("/v1/as-program", weak.key, "jobs:read"),
    ]:
        status, problem = await ask(client, path, key)
        assert (status, problem["code"]) == (403, "missing_scope")
        assert scope in problem["detail"]


async def test_a_thousand_requests_with_one_key_cost_one_verification(
    client: Client, node: Caller, hasher: CountingHasher
) -> None:
    asked = [ask(client, "/v1/as-node", node.key) for _ in range(1000)]
    assert {status for status, _ in await asyncio.gather(*asked)} == {200}
    assert hasher.verified == 1


async def test_the_verification_of_one_key_keeps_nobody_else_waiting(
    client: Client, node: Caller, admin: Caller, hasher: CountingHasher
) -> None:
    await ask(client, "/v1/as-program", admin.key)
    blocked = asyncio.Event()
    verify = hasher.verify

    async def slow(key_hash: str, key: str) -> bool:
        await blocked.wait()
        return await verify(key_hash, key)

    hasher.verify = slow  # type: ignore[method-assign]
    waiting = asyncio.gather(ask(client, "/v1/as-node", node.key))
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200
    assert not waiting.done()
    blocked.set()
    assert (await waiting)[0][0] == 200


@attrs.frozen
class Ending:
    """Makes a key bad that was good and is remembered."""

    name: str
    of_node: bool
    end: Callable[[Pool, Caller], Any]


async def _revoke_node_key(pool: Pool, key: Caller) -> None:
    assert key.node_id is not None
    await credentials.revoke_node_key(pool, key.organization_id, key.node_id, key.id)


async def _revoke_api_key(pool: Pool, key: Caller) -> None:
    await credentials.revoke_api_key(pool, key.organization_id, key.id)


async def _retire(pool: Pool, key: Caller) -> None:
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("UPDATE compute_nodes SET status = 'retired'")
        await conn.execute("UPDATE credential_version SET value = value + 1")


ENDINGS = [
    Ending("a node's key is revoked", True, _revoke_node_key),
    Ending("an API key is revoked", False, _revoke_api_key),
    Ending("its node is retired", True, _retire),
]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
async def test_an_ended_key_is_refused_within_two_seconds_and_no_other_is(
    pool: Pool, client: Client, keys: Keys, admin: Caller, hasher: CountingHasher, ending: Ending
) -> None:
    ended = (await keys.node(admin.organization_id)) if ending.of_node else admin
    kept = await keys.api(admin.organization_id, ApiScope.JOBS_READ)
    path = "/v1/as-node" if ending.of_node else "/v1/as-program"
    assert (await ask(client, path, ended.key))[0] == 200
    assert (await ask(client, "/v1/as-program", kept.key))[0] == 200
    await ending.end(pool, ended)
    async with asyncio.timeout(authenticator.TRUSTED_S):
        while (await ask(client, path, ended.key))[0] != 401:
            await asyncio.sleep(0.02)
    assert (await ask(client, "/v1/as-program", kept.key))[0] == 200
    assert hasher.verified == 2  # the other one was looked up again, not verified


async def test_a_key_revoked_while_it_is_verified_is_not_remembered(
    pool: Pool, client: Client, admin: Caller, node: Caller, hasher: CountingHasher
) -> None:
    verify = hasher.verify

    async def revoked_meanwhile(key_hash: str, key: str) -> bool:
        if key == node.key:
            await _revoke_node_key(pool, node)
            await asyncio.sleep(authenticator.RECHECK_S + 0.05)  # a look has to be due
            await ask(client, "/v1/as-program", admin.key)
        return await verify(key_hash, key)

    hasher.verify = revoked_meanwhile  # type: ignore[method-assign]
    await ask(client, "/v1/as-node", node.key)
    assert await refused(client, "/v1/as-node", node.key) == "unauthorized"


async def test_a_key_ends_when_its_time_is_over(
    client: Client, keys: Keys, admin: Caller, hasher: CountingHasher
) -> None:
    brief = await keys.api(admin.organization_id, ApiScope.JOBS_READ, expires_in_s=0.6)
    assert (await ask(client, "/v1/as-program", brief.key))[0] == 200
    async with asyncio.timeout(0.8):
        while (await ask(client, "/v1/as-program", brief.key))[0] != 401:
            await asyncio.sleep(0.02)
    assert hasher.verified == 1


async def test_a_wrong_secret_is_limited_by_prefix_and_address(
    client: Client, node: Caller, admin: Caller, hasher: CountingHasher
) -> None:
    wrong = [node.key[:-3] + tail for tail in ("aaa", "bbb", "ccc") if not node.key.endswith(tail)]
    asked = [ask(client, "/v1/as-node", wrong[n % len(wrong)]) for n in range(40)]
    statuses = [status for status, _ in await asyncio.gather(*asked)]
    assert sorted(statuses) == [401] * attempts.ALLOWED + [429] * (40 - attempts.ALLOWED)
    assert hasher.verified == attempts.ALLOWED
    async with client.get("/v1/as-node", headers={"Authorization": f"Bearer {wrong[0]}"}) as answer:
        assert 0 < int(answer.headers["Retry-After"]) <= attempts.WINDOW_S
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200


async def test_a_remembered_key_goes_on_while_others_guess(
    client: Client, node: Caller, hasher: CountingHasher
) -> None:
    assert (await ask(client, "/v1/as-node", node.key))[0] == 200
    for _ in range(attempts.ALLOWED + 1):
        await ask(client, "/v1/as-node", node.key[:-3] + "abc")
    assert (await ask(client, "/v1/as-node", node.key))[0] == 200


def test_the_limit_ends_with_its_minute() -> None:
    failures = attempts.Attempts()
    for second in range(attempts.ALLOWED):
        failures.check(("umn_a", "10.0.0.1"), float(second))
        failures.failed(("umn_a", "10.0.0.1"), float(second))
    with pytest.raises(RateLimited) as told:
        failures.check(("umn_a", "10.0.0.1"), 59.5)
    assert told.value.retry_after_s == 1
    failures.check(("umn_a", "10.0.0.2"), 59.5)
    failures.check(("umn_b", "10.0.0.1"), 59.5)
    failures.check(("umn_a", "10.0.0.1"), 60.0)


async def test_only_the_credential_that_was_used_is_marked(
    pool: Pool, app: web.Application, client: Client, keys: Keys, node: Caller
) -> None:
    other = await keys.node(node.organization_id, node_id=node.node_id)
    await ask(client, "/v1/as-node", node.key)
    await app[context.AUTH].note_used()
    used = await pool.fetch("SELECT id FROM node_credentials WHERE last_used_at IS NOT NULL")
    assert [row["id"] for row in used] == [node.id]
    assert other.id != node.id


async def test_the_last_uses_are_written_at_the_end(
    pool: Pool, client: Client, admin: Caller
) -> None:
    await ask(client, "/v1/as-program", admin.key)
    await client.close()
    assert await pool.fetchval("SELECT last_used_at IS NOT NULL FROM api_keys")


async def test_marking_uses_waits_for_no_lock_and_keeps_what_it_could_not_write(
    pool: Pool, app: web.Application, client: Client, admin: Caller
) -> None:
    await ask(client, "/v1/as-program", admin.key)
    await pool.execute("ALTER TABLE api_keys RENAME TO away")
    with pytest.raises(asyncpg.UndefinedTableError):
        await app[context.AUTH].note_used()
    await pool.execute("ALTER TABLE away RENAME TO api_keys")
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("SELECT FROM api_keys FOR UPDATE")
        async with asyncio.timeout(1):
            await app[context.AUTH].note_used()
    assert await pool.fetchval("SELECT last_used_at IS NULL FROM api_keys")


async def test_nobody_is_trusted_when_revocations_cannot_be_seen(
    pool: Pool, client: Client, admin: Caller
) -> None:
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200
    await pool.close()
    async with asyncio.timeout(authenticator.TRUSTED_S):
        while (await ask(client, "/v1/as-program", admin.key))[0] != 503:
            await asyncio.sleep(0.02)


async def test_nobody_is_trusted_while_the_database_takes_too_long_to_say(
    pool: Pool, client: Client, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200
    monkeypatch.setattr(authenticator, "RECHECK_S", 0.0)
    monkeypatch.setattr(authenticator, "TRUSTED_S", 0.2)
    async with pool.acquire() as conn, conn.transaction():
        await conn.execute("LOCK credential_version")
        asked = [asyncio.create_task(ask(client, "/v1/as-program", admin.key)) for _ in range(50)]
        await asyncio.sleep(0.3)  # the answer has to come too late
    assert {status for status, _ in await asyncio.gather(*asked)} == {503}
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200


async def test_a_database_that_is_away_is_asked_once_for_all_who_wait(
    client: Client, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await ask(client, "/v1/as-program", admin.key))[0] == 200
    monkeypatch.setattr(authenticator, "RECHECK_S", 0.0)
    monkeypatch.setattr(authenticator, "TRUSTED_S", 0.0)
    answered, looks = asyncio.Event(), 0

    async def away(_: Pool) -> int:
        nonlocal looks
        looks += 1
        await answered.wait()
        raise ConnectionRefusedError

    monkeypatch.setattr(credentials, "version", away)
    asked = [asyncio.create_task(ask(client, "/v1/as-program", admin.key)) for _ in range(50)]
    await asyncio.sleep(0.2)  # everybody has to be waiting
    answered.set()
    assert {status for status, _ in await asyncio.gather(*asked)} == {503}
    assert looks == 1


async def test_a_key_made_with_the_real_profile_is_verified(
    pool: Pool, aiohttp_client: AiohttpClient
) -> None:
    hasher = Hasher()
    app = wiring.build(pool, hasher=hasher, pending=_nothing_pending)
    app[context.MIGRATED].set()
    client: Client = await aiohttp_client(Server(app))
    admin = await Keys(pool, hasher).organization()
    key_hash = await pool.fetchval("SELECT key_hash FROM api_keys")
    assert argon2.extract_parameters(key_hash) == PROFILE
    async with client.get("/v1/keys", headers=admin.headers) as answer:
        assert answer.status == 200
    hasher.close()


async def _nothing_pending(_: Pool) -> tuple[str, ...]:
    return ()


async def test_another_prefix_with_the_same_secret_is_another_key(
    client: Client, keys: Keys, admin: Caller
) -> None:
    other = await keys.organization(f"other-{uuid7()}")
    mixed = other.key[:17] + admin.key[17:]
    assert await refused(client, "/v1/as-program", mixed) == "unauthorized"
