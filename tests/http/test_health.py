"""Health: of the process, and of what it needs."""

from collections.abc import Sequence

import pytest
from aiohttp import web

from tests.http.conftest import Caller, Client
from umbra_compute.config import ConfigurationError
from umbra_compute.db import Pool
from umbra_compute.http import context, health


async def test_the_process_is_well_without_a_database(client: Client, pool: Pool) -> None:
    await pool.close()
    async with client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "ok"})


async def test_ready_means_database_and_schema(client: Client) -> None:
    async with client.get("/readyz") as answer:
        told = await answer.json()
    assert (answer.status, told) == (200, {"status": "ready", "database": "ok", "schema": "ok"})


async def _migrations_to_go(_: Pool) -> Sequence[str]:
    return ("0002_next.sql",)


async def _closed(pool: Pool) -> Sequence[str]:
    await pool.close()
    return [str(await pool.fetchval("SELECT 1"))]


async def _hanging(pool: Pool) -> Sequence[str]:
    return [str(await pool.fetchval("SELECT pg_sleep(8)"))]


async def _foreign(_: Pool) -> Sequence[str]:
    raise ConfigurationError("Migration 0001 is not the one that this database was made with.")


@pytest.mark.parametrize(
    ("pending", "code"),
    [
        (_migrations_to_go, "schema_not_current"),
        (_foreign, "schema_not_current"),
        (_closed, "database_unavailable"),
        (_hanging, "database_unavailable"),
    ],
)
async def test_not_ready_says_why(
    app: web.Application,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    pending: context.Pending,
    code: str,
) -> None:
    monkeypatch.setattr(health, "ANSWER_S", 0.2)
    monkeypatch.setitem(app._state, context.PENDING, pending)
    async with client.get("/readyz") as answer:
        problem = await answer.json()
    assert (answer.status, problem["code"]) == (503, code)
    assert answer.headers["Retry-After"] == "1"


async def test_a_controller_that_stops_is_not_ready(app: web.Application, client: Client) -> None:
    app[context.STOPPING].set()
    async with client.get("/readyz") as answer:
        assert (answer.status, (await answer.json())["code"]) == (503, "shutting_down")


async def test_nobody_is_let_in_before_the_schema_is_there(
    app: web.Application, client: Client, admin: Caller
) -> None:
    app[context.MIGRATED].clear()
    async with client.get("/v1/keys", headers=admin.headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (503, "database_unavailable")
    app[context.MIGRATED].set()
    async with client.get("/v1/keys", headers=admin.headers) as answer:
        assert answer.status == 200
