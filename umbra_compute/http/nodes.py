"""Routes for whoever owns the machines."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from aiohttp import web

from umbra_compute.errors import NodeNotFound
from umbra_compute.http import auth, wire
from umbra_compute.http import wire_nodes as shapes
from umbra_compute.http.context import HEARTBEAT_STALE_S, POOL
from umbra_compute.model.caller import ApiScope
from umbra_compute.model.nodes import NodeStatus
from umbra_compute.ops import nodes
from umbra_compute.store.nodes import Change, NewNode

routes = web.RouteTableDef()


@routes.post("/v1/nodes")
async def create(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    body = await wire.read(request, shapes.NodeBody)
    node = await nodes.create(
        request.app[POOL],
        caller.organization_id,
        NewNode(**msgspec.structs.asdict(body)),
        stale_s=request.app[HEARTBEAT_STALE_S],
    )
    return wire.reply(shapes.NodeReply.of(node), status=201)


@routes.get("/v1/nodes")
async def list_nodes(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_READ)
    asked = wire.query(request, shapes.NodesQuery)
    page = await nodes.page(
        request.app[POOL],
        caller.organization_id,
        status=asked.status,
        stale_s=request.app[HEARTBEAT_STALE_S],
        after=None if asked.cursor is None else _place(asked.cursor),
        limit=asked.limit + 1,
    )
    shown = page[: asked.limit]
    more = len(page) > len(shown)
    cursor = wire.encode_cursor(shown[-1].created_at, shown[-1].id) if more else None
    told = [shapes.NodeReply.of(node) for node in shown]
    return wire.reply(shapes.NodesReply(nodes=told, next_cursor=cursor))


@routes.get("/v1/nodes/{node_id}")
async def show(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_READ)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    node = await nodes.get(
        request.app[POOL],
        caller.organization_id,
        node_id,
        stale_s=request.app[HEARTBEAT_STALE_S],
    )
    return wire.reply(shapes.NodeReply.of(node))


@routes.patch("/v1/nodes/{node_id}")
async def change(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    body = await wire.read(request, shapes.NodePatch)
    node = await nodes.change(
        request.app[POOL],
        caller.organization_id,
        node_id,
        _change(body),
        stale_s=request.app[HEARTBEAT_STALE_S],
    )
    return wire.reply(shapes.NodeReply.of(node))


@routes.delete("/v1/nodes/{node_id}")
async def retire(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_WRITE)
    node_id = wire.path_id(request, "node_id", NodeNotFound)
    await nodes.change(
        request.app[POOL],
        caller.organization_id,
        node_id,
        Change(status=NodeStatus.RETIRED),
        stale_s=request.app[HEARTBEAT_STALE_S],
    )
    return web.Response(status=204)


def _change(body: shapes.NodePatch) -> Change:
    given: dict[str, Any] = {
        name: value
        for name, value in msgspec.structs.asdict(body).items()
        if value is not msgspec.UNSET
    }
    given |= {f"{name}_given": name in given for name in ("locality", "kinds")}
    return Change(**given)


def _place(cursor: str) -> tuple[datetime, UUID]:
    return wire.decode_cursor(cursor, tuple[wire.Timestamp, UUID])
