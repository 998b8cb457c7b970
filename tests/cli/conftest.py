"""A stub of the controller and the real one, and the environment of somebody who may call it."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from pytest_aiohttp.plugin import AiohttpClient

from tests.client.stub import KEY, Stub, serving
from tests.http.conftest import Caller, Client, Server, admin, app, hasher, keys

__all__ = ["admin", "app", "hasher", "keys"]  # fixtures of the HTTP tests, for these too


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with serving() as stub:
        yield stub


@pytest.fixture
def caller(stub: Stub) -> dict[str, str]:
    return {"UMBRA_URL": stub.url, "UMBRA_API_KEY": KEY}


@pytest.fixture
async def real(
    app: web.Application, admin: Caller, aiohttp_client: AiohttpClient
) -> dict[str, str]:
    """The environment of an administrator of the real application."""
    served: Client = await aiohttp_client(Server(app))
    return {"UMBRA_URL": str(served.make_url("")).rstrip("/"), "UMBRA_API_KEY": admin.key}
