"""Routes for what a node says and asks about itself."""

from collections.abc import Hashable, Iterable
from typing import cast

import msgspec
from aiohttp import web

from umbra_compute.errors import Fault, InvalidBody
from umbra_compute.http import auth, wire
from umbra_compute.http import wire_nodes as shapes
from umbra_compute.http.body import MAX_FAULTS
from umbra_compute.http.context import HEARTBEAT_INTERVAL_S, HEARTBEAT_STALE_S, POOL, WAKE
from umbra_compute.model.caller import NodeScope
from umbra_compute.model.nodes import LeaseUse, Report, Resident
from umbra_compute.ops import heartbeats, models, nodes

routes = web.RouteTableDef()


@routes.post("/v1/node/heartbeat")
async def heartbeat(request: web.Request) -> web.Response:
    node = await auth.node(request, NodeScope.HEARTBEAT)
    body = await wire.read(request, shapes.HeartbeatBody)
    app = request.app
    reply = await heartbeats.beat(
        app[POOL], app[WAKE], node, _report(body), interval_s=app[HEARTBEAT_INTERVAL_S]
    )
    return wire.reply(shapes.HeartbeatReply.of(reply))


@routes.get("/v1/node")
async def myself(request: web.Request) -> web.Response:
    caller = await auth.node(request, NodeScope.READ)
    node = await nodes.get(
        request.app[POOL],
        caller.organization_id,
        caller.node_id,
        stale_s=request.app[HEARTBEAT_STALE_S],
    )
    return wire.reply(shapes.NodeReply.of(node))


@routes.get("/v1/node/models")
async def registry(request: web.Request) -> web.Response:
    caller = await auth.node(request, NodeScope.READ)
    known = await models.page(request.app[POOL], caller.organization_id, after=None, limit=None)
    told = [shapes.ModelReply.of(model) for model in known]
    return wire.reply(shapes.ModelsReply(models=told, next_cursor=None))


def _report(body: shapes.HeartbeatBody) -> Report:
    """Return what the node says. Raises InvalidBody for what it says twice."""
    residents = None
    if body.resident_models is not None:
        residents = tuple(
            Resident(slug=one) if isinstance(one, str) else one.value()
            for one in body.resident_models
        )
    labels = () if body.devices is None else tuple(d.label for d in body.devices)
    held = () if residents is None else tuple((r.slug, r.device) for r in residents)
    faults = [*_twice("devices", labels), *_twice("resident_models", held)]
    if faults:
        raise InvalidBody(*faults)
    given = body.kinds is not msgspec.UNSET
    kinds = cast("list[str] | None", body.kinds) if given else None
    return Report(
        agent_version=body.agent_version,
        agent_instance_id=body.agent_instance_id,
        sequence=body.sequence,
        heartbeat_interval_s=body.heartbeat_interval_s,
        measurements=(
            None if body.measurements is None else msgspec.structs.asdict(body.measurements)
        ),
        devices=None if body.devices is None else tuple(d.value() for d in body.devices),
        residents=residents,
        active_jobs=body.active_jobs,
        leases=(
            None
            if body.leases is None
            else tuple(LeaseUse(**msgspec.structs.asdict(use)) for use in body.leases)
        ),
        max_jobs=body.max_jobs,
        kinds=None if kinds is None else tuple(kinds),
        kinds_given=given,
    )


def _twice(field: str, names: Iterable[Hashable]) -> list[Fault]:
    """Return a fault for each name that an earlier one is equal to."""
    seen: set[Hashable] = set()
    found: list[Fault] = []
    for position, name in enumerate(names):
        if name in seen:
            found.append((f"$.{field}[{position}]", "is named twice in this report"))
        seen.add(name)
    return found[:MAX_FAULTS]
