"""Wiring, start and stop: the one place that knows every part. It decides nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from aiohttp import web

from umbra_compute.db import AWAY, Pool
from umbra_compute.http import context, health, keys
from umbra_compute.http.authenticator import Authenticator
from umbra_compute.http.errors import problems
from umbra_compute.http.middleware import gate, put_request_id, served
from umbra_compute.ops.hashing import Hasher

ROUTES: Final = (health.routes, keys.routes)

LAST_WRITE_S: Final = 1.0
"""For last_used_at at the end: nice to have, and not worth a slow stop."""


def build(pool: Pool, *, hasher: Hasher, pending: context.Pending) -> web.Application:
    """Return the application. The caller opens `pool` and `hasher` before, and closes them after.

    It refuses /v1 until the caller sets its MIGRATED event.
    """
    app = web.Application(middlewares=[served, problems, gate])
    app[context.POOL] = pool
    app[context.HASHER] = hasher
    app[context.AUTH] = Authenticator(pool, hasher)
    app[context.PENDING] = pending
    app[context.MIGRATED] = asyncio.Event()
    app[context.STOPPING] = asyncio.Event()
    app.on_response_prepare.append(put_request_id)
    app.on_shutdown.append(_answer_who_waits)
    app.cleanup_ctx.append(_noting_used_keys)
    for routes in ROUTES:
        app.add_routes(routes)
    return app


async def _answer_who_waits(app: web.Application) -> None:
    app[context.STOPPING].set()


async def _noting_used_keys(app: web.Application) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        noting = group.create_task(app[context.AUTH].keep_noting())
        yield
        noting.cancel()
    with suppress(*AWAY):
        async with asyncio.timeout(LAST_WRITE_S):
            await app[context.AUTH].note_used()
