"""Is the process there (/healthz), and would it serve a request (/readyz). Open to everybody."""

import asyncio
from typing import Final

from aiohttp import web

from umbra_compute.config import ConfigurationError
from umbra_compute.errors import SchemaNotCurrent, ShuttingDown
from umbra_compute.http import wire
from umbra_compute.http.context import PENDING, POOL, STOPPING

routes = web.RouteTableDef()

ANSWER_S: Final = 2.0
"""A probe wants its answer soon: a database that takes longer counts as away."""


@routes.get("/healthz")
async def healthz(_: web.Request) -> web.Response:
    return wire.reply({"status": "ok"})


@routes.get("/readyz")
async def readyz(request: web.Request) -> web.Response:
    """Tell a load balancer whether to send work here.

    Raises ShuttingDown, SchemaNotCurrent, or what the database raises when it is away.
    """
    if request.app[STOPPING].is_set():
        raise ShuttingDown
    try:
        async with asyncio.timeout(ANSWER_S):
            pending = await request.app[PENDING](request.app[POOL])
    except ConfigurationError:  # made by other migrations than ours: to count them says nothing
        raise SchemaNotCurrent(1) from None
    if pending:
        raise SchemaNotCurrent(len(pending))
    return wire.reply({"status": "ready", "database": "ok", "schema": "ok"})
