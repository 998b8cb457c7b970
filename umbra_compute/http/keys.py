"""Routes for keys: those of nodes, and those of people and programs."""

from datetime import datetime
from uuid import UUID

from aiohttp import web

from umbra_compute.errors import CredentialNotFound, KeyNotFound, NodeNotFound
from umbra_compute.http import auth, wire
from umbra_compute.http.context import HASHER, POOL
from umbra_compute.http.wire_keys import ApiKeyShown, NewApiKey, NewNodeKey, NodeKeyShown, Page
from umbra_compute.model.caller import ApiScope
from umbra_compute.model.credentials import ApiKey, NodeCredential
from umbra_compute.ops import credentials

routes = web.RouteTableDef()


@routes.post("/v1/nodes/{node_id}/credentials")
async def issue_node_key(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    body = await wire.read(request, NewNodeKey, empty_as=b"{}")
    credential, key = await credentials.issue_node_key(
        request.app[POOL],
        request.app[HASHER],
        caller.organization_id,
        node_id,
        scopes=body.scopes,
        agent_name=body.agent_name,
        expires_in_s=body.expires_in_s,
    )
    return wire.reply(NodeKeyShown.of(credential, key), status=201)


@routes.get("/v1/nodes/{node_id}/credentials")
async def list_node_keys(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    page = wire.query(request, Page)
    found = await credentials.list_node_keys(
        request.app[POOL],
        caller.organization_id,
        node_id,
        after=_after(page),
        limit=page.limit + 1,
    )
    shown = [NodeKeyShown.of(credential) for credential in found[: page.limit]]
    return wire.reply({"credentials": shown, "next_cursor": _next(found, page)})


@routes.delete("/v1/nodes/{node_id}/credentials/{credential_id}")
async def revoke_node_key(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    credential_id = wire.path_id(request, "credential_id", CredentialNotFound)
    await credentials.revoke_node_key(
        request.app[POOL], caller.organization_id, node_id, credential_id
    )
    return web.Response(status=204)


@routes.post("/v1/keys")
async def issue_api_key(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.KEYS_WRITE)
    body = await wire.read(request, NewApiKey)
    api_key, key = await credentials.issue_api_key(
        request.app[POOL],
        request.app[HASHER],
        caller,
        name=body.name,
        scopes=body.scopes,
        expires_in_s=body.expires_in_s,
    )
    return wire.reply(ApiKeyShown.of(api_key, key), status=201)


@routes.get("/v1/keys")
async def list_api_keys(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.KEYS_WRITE)
    page = wire.query(request, Page)
    found = await credentials.list_api_keys(
        request.app[POOL], caller.organization_id, after=_after(page), limit=page.limit + 1
    )
    shown = [ApiKeyShown.of(api_key) for api_key in found[: page.limit]]
    return wire.reply({"keys": shown, "next_cursor": _next(found, page)})


@routes.delete("/v1/keys/{key_id}")
async def revoke_api_key(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.KEYS_WRITE)
    key_id = wire.path_id(request, "key_id", KeyNotFound)
    await credentials.revoke_api_key(request.app[POOL], caller.organization_id, key_id)
    return web.Response(status=204)


def _after(page: Page) -> tuple[datetime, UUID] | None:
    if page.cursor is None:
        return None
    return wire.decode_cursor(page.cursor, tuple[wire.Timestamp, UUID])


def _next(found: list[NodeCredential] | list[ApiKey], page: Page) -> str | None:
    """Return the cursor of the page's last row, None if nothing is behind it."""
    if len(found) <= page.limit:
        return None
    last = found[page.limit - 1]
    return wire.encode_cursor(last.created_at, last.id)
