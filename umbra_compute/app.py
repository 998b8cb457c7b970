"""Wiring, start and stop: the one place that knows every part. It decides nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from aiohttp import web

from umbra_compute.coalesce import Coalescer
from umbra_compute.db import AWAY, Pool
from umbra_compute.http import context, health, keys, node, submitter
from umbra_compute.http.authenticator import Authenticator
from umbra_compute.http.errors import problems
from umbra_compute.http.middleware import gate, put_request_id, served
from umbra_compute.ops import jobs, leases
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.ops.hashing import Hasher
from umbra_compute.wake import Wake

ROUTES: Final = (health.routes, keys.routes, node.routes, submitter.routes)

HANDLERS_S: Final = 6.0
"""How long a stop waits for requests in progress: of the 10 s it may take, what follows needs 3."""

LAST_WRITE_S: Final = 1.0
"""For last_used_at at the end: nice to have, and not worth a slow stop."""


def build(
    pool: Pool, *, hasher: Hasher, pending: context.Pending, heartbeat_stale_s: float = 45.0
) -> web.Application:
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
    _put_queue(app, pool, heartbeat_stale_s)
    app.on_response_prepare.append(put_request_id)
    app.on_shutdown.append(_answer_who_waits)
    app.cleanup_ctx.append(_noting_used_keys)
    for routes in ROUTES:
        app.add_routes(routes)
    return app


def runner(app: web.Application) -> web.AppRunner:
    """Return what serves `app`, with the choices that handlers rely on."""
    return web.AppRunner(
        app,
        access_log=None,  # middleware.served writes the line
        auto_decompress=False,  # wire.read refuses compressed bodies
        handler_cancellation=False,  # an operation that has begun ends, whoever hung up
        shutdown_timeout=HANDLERS_S,
    )


def _put_queue(app: web.Application, pool: Pool, heartbeat_stale_s: float) -> None:
    wake, catalogue = Wake(), Catalogue()
    app[context.WAKE] = wake
    app[context.CATALOGUE] = catalogue
    app[context.HEARTBEAT_STALE_S] = heartbeat_stale_s
    app[context.SUBMIT] = Coalescer(lambda new: jobs.submit(pool, catalogue, wake, new))
    app[context.RENEW] = Coalescer(lambda renewals: leases.renew(pool, renewals))
    app[context.COMPLETE] = Coalescer(lambda done: leases.complete(pool, wake, done))


async def _answer_who_waits(app: web.Application) -> None:
    app[context.STOPPING].set()
    app[context.WAKE].stop()


async def _noting_used_keys(app: web.Application) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as group:
        noting = group.create_task(app[context.AUTH].keep_noting())
        yield
        noting.cancel()
    with suppress(*AWAY):
        async with asyncio.timeout(LAST_WRITE_S):
            await app[context.AUTH].note_used()
