"""Routes for the registry of models. A slug may hold ":" and "/", percent-encoded or not."""

import msgspec
from aiohttp import web

from umbra_compute.errors import InvalidBody
from umbra_compute.http import auth, wire
from umbra_compute.http import wire_nodes as shapes
from umbra_compute.http.context import POOL
from umbra_compute.model.caller import ApiScope
from umbra_compute.model.nodes import Model
from umbra_compute.ops import models

routes = web.RouteTableDef()

_SLUG_CHARS = 200


@routes.put("/v1/models/{slug:.+}")
async def put(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.MODELS_WRITE)
    slug = request.match_info["slug"]
    if len(slug) > _SLUG_CHARS:
        raise InvalidBody(("slug", f"a model's name has at most {_SLUG_CHARS} characters"))
    body = await wire.read(request, shapes.ModelBody)
    told = msgspec.structs.asdict(body)
    told["requires_accelerators"] = tuple(sorted(set(body.requires_accelerators)))
    model, created = await models.put(
        request.app[POOL], caller.organization_id, Model(slug=slug, **told)
    )
    return wire.reply(shapes.ModelReply.of(model), status=201 if created else 200)


@routes.get("/v1/models")
async def list_models(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_READ)
    asked = wire.query(request, shapes.ModelsQuery)
    after = None if asked.cursor is None else _place(asked.cursor)
    page = await models.page(
        request.app[POOL], caller.organization_id, after=after, limit=asked.limit + 1
    )
    shown = page[: asked.limit]
    cursor = wire.encode_cursor(shown[-1].slug) if len(page) > len(shown) else None
    told = [shapes.ModelReply.of(model) for model in shown]
    return wire.reply(shapes.ModelsReply(models=told, next_cursor=cursor))


@routes.get("/v1/models/{slug:.+}")
async def show(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.NODES_READ)
    slug = request.match_info["slug"]
    model = await models.get(request.app[POOL], caller.organization_id, slug)
    return wire.reply(shapes.ModelReply.of(model))


@routes.delete("/v1/models/{slug:.+}")
async def delete(request: web.Request) -> web.Response:
    caller = await auth.api(request, ApiScope.MODELS_WRITE)
    await models.delete(request.app[POOL], caller.organization_id, request.match_info["slug"])
    return web.Response(status=204)


def _place(cursor: str) -> str:
    [slug] = wire.decode_cursor(cursor, tuple[shapes.StorableSlug])
    return slug
