"""A stub and each client on it; the real application; no waiting between attempts."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from tests.client.both import CLIENTS, Either
from tests.client.stub import KEY, Stub, serving
from tests.http.conftest import Client, Server, admin, app, hasher, keys
from umbra_compute.client import calls, exchange

__all__ = ["admin", "app", "hasher", "keys"]  # fixtures of the HTTP tests, for these too


@pytest.fixture
async def served(app: web.Application, aiohttp_client: AiohttpClient) -> Client:
    return await aiohttp_client(Server(app))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "BACKOFF_S", 0.001)
    monkeypatch.setattr("umbra_compute.client.api.LOOK_AGAIN_S", 0.001)
    monkeypatch.setattr("umbra_compute.client.aio.LOOK_AGAIN_S", 0.001)
    assert calls.LOOK_AGAIN_S == 1.0


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with serving() as stub:
        yield stub


@pytest.fixture(params=list(CLIENTS))
async def client(stub: Stub, request: pytest.FixtureRequest) -> AsyncIterator[Either]:
    either = Either(CLIENTS[request.param](stub.url, KEY))
    yield either
    await either.close()
