"""The application on a real database, and keys to call it with."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import argon2
import attrs
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from pytest_aiohttp.plugin import AiohttpClient

from umbra_compute import app as wiring
from umbra_compute.db import Pool
from umbra_compute.http import context
from umbra_compute.ids import uuid7
from umbra_compute.model.caller import ApiScope, NodeScope
from umbra_compute.ops import credentials, organizations
from umbra_compute.ops.hashing import Hasher

Client = TestClient[Any, Any]


@attrs.frozen
class Caller:
    """A key that was just made, and whose it is."""

    organization_id: UUID
    id: UUID  # of the key or credential
    key: str
    node_id: UUID | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}


@attrs.frozen
class Keys:
    """Makes organizations, nodes and keys, through the operations that the routes use."""

    pool: Pool
    hasher: Hasher

    async def organization(self, name: str = "acme") -> Caller:
        """Return a new organization's first key, which may do everything."""
        made, api_key, key = await organizations.bootstrap(self.pool, self.hasher, name)
        return Caller(made.id, api_key.id, key.text)

    async def api(
        self, organization_id: UUID, *scopes: ApiScope, expires_in_s: float | None = None
    ) -> Caller:
        api_key, key = await credentials.issue_first_api_key(
            self.pool,
            self.hasher,
            organization_id,
            name="a program",
            scopes=scopes,
            expires_in_s=expires_in_s,
        )
        return Caller(organization_id, api_key.id, key.text)

    async def node(
        self,
        organization_id: UUID,
        *,
        node_id: UUID | None = None,
        scopes: Sequence[NodeScope] = tuple(NodeScope),
    ) -> Caller:
        """Return a key of a new node, or one more of `node_id`."""
        if node_id is None:
            node_id = uuid7()
            await self.pool.execute(
                "INSERT INTO compute_nodes (id, organization_id, name) VALUES ($1, $2, $3)",
                *(node_id, organization_id, str(node_id)),
            )
        credential, key = await credentials.issue_node_key(
            self.pool, self.hasher, organization_id, node_id, scopes=scopes
        )
        return Caller(organization_id, credential.id, key.text, node_id)


@pytest.fixture
def hasher() -> Iterator[Hasher]:
    hasher = Hasher(argon2.profiles.CHEAPEST)
    yield hasher
    hasher.close()


@pytest.fixture
def keys(pool: Pool, hasher: Hasher) -> Keys:
    return Keys(pool, hasher)


@pytest.fixture
async def app(pool: Pool, hasher: Hasher) -> web.Application:
    async def nothing_pending(_: Pool) -> Sequence[str]:
        return ()

    app = wiring.build(pool, hasher=hasher, pending=nothing_pending)
    app[context.MIGRATED].set()
    return app


class Server(TestServer):
    """Serves as in production. aiohttp's own test server cancels the handlers of who hangs up."""

    async def _make_runner(self, **_: Any) -> web.AppRunner:
        return wiring.runner(self.app)


@pytest.fixture
async def client(app: web.Application, aiohttp_client: AiohttpClient) -> Client:
    return await aiohttp_client(Server(app))


@pytest.fixture
async def admin(keys: Keys) -> Caller:
    """The first key of the organization acme."""
    return await keys.organization()
