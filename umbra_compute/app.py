"""Wiring, start and stop: the one place that knows every part. It decides nothing."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final

import asyncpg
import attrs
import structlog
from aiohttp import web

from umbra_compute import embedded, migrate, sweeps
from umbra_compute.coalesce import Coalescer
from umbra_compute.config import ConfigurationError, Listen, Settings
from umbra_compute.db import AWAY, Pool, open_pool
from umbra_compute.http import (
    console,
    context,
    health,
    heartbeat,
    keys,
    models,
    node,
    nodes,
    submitter,
)
from umbra_compute.http.authenticator import Authenticator
from umbra_compute.http.errors import problems
from umbra_compute.http.middleware import gate, put_request_id, served
from umbra_compute.ops import jobs, leases
from umbra_compute.ops.catalogue import Catalogue
from umbra_compute.ops.hashing import Hasher
from umbra_compute.wake import Wake, relaying

log = structlog.get_logger(__name__)

ROUTES: Final = (
    console.routes,
    health.routes,
    heartbeat.routes,
    keys.routes,
    models.routes,
    node.routes,
    nodes.routes,
    submitter.routes,
)

HANDLERS_S: Final = 6.0
"""How long a stop waits for requests in progress: of the 10 s it may take, what follows needs 3."""

LAST_WRITE_S: Final = 1.0
"""For last_used_at at the end: nice to have, and not worth a slow stop."""

CLOSE_S: Final = 2.0
"""For connections to say goodbye in; after that they are cut."""

LOOK_S: Final = 1.0
"""Between looks whether a database that was away is back, or whether our own still runs."""

_USELESS: Final = (ValueError, asyncpg.InvalidAuthorizationSpecificationError)
"""What no waiting mends: a DSN that is none, or that the server refuses."""


class DatabaseEnded(Exception):
    """The controller's own PostgreSQL ended under it."""

    def __init__(self) -> None:
        super().__init__("The embedded PostgreSQL ended: start the controller again.")


def build(
    pool: Pool,
    *,
    hasher: Hasher,
    pending: context.Pending,
    heartbeat_stale_s: float = 45.0,
    heartbeat_interval_s: float = 15.0,
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
    app[context.HEARTBEAT_STALE_S] = heartbeat_stale_s
    app[context.HEARTBEAT_INTERVAL_S] = heartbeat_interval_s
    _put_queue(app, pool)
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


def _put_queue(app: web.Application, pool: Pool) -> None:
    wake, catalogue = Wake(), Catalogue()
    app[context.WAKE] = wake
    app[context.CATALOGUE] = catalogue
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


def run(settings: Settings, listening: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, on a database of our own if the settings name none.

    To be called from the main thread, which owns signals and the embedded server.
    Raises what `serve` and `embedded.start` raise.
    """
    if settings.dsn is not None:
        _run(settings, settings.dsn, listening, lambda: True)
        return
    server = embedded.start(settings.data_dir)
    log.info("database.started", data_dir=str(settings.data_dir), pid=server.pid)
    try:
        _run(settings, server.dsn, listening, lambda: server.is_running)
    finally:
        server.stop()


def _run(
    settings: Settings, dsn: str, listening: Callable[[str], None], alive: Callable[[], bool]
) -> None:
    async def until_signalled() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(settings, dsn, stop=stop, listening=listening, alive=alive)
        log.info("controller.stopped")

    with asyncio.Runner(loop_factory=_new_loop) as loop:
        loop.run(until_signalled())


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def serve(
    settings: Settings,
    dsn: str,
    *,
    stop: asyncio.Event,
    listening: Callable[[str], None],
    alive: Callable[[], bool] = lambda: True,
) -> None:
    """Serve until `stop` is set; call `listening` with the URL once somebody may call.

    A database that is away, at the start or later, is waited for: /v1 answers 503 meanwhile.
    Stopping takes under 10 s: no new connections, long polls answered, requests in progress
    finished, sweeps stopped, the pool closed.

    Raises ConfigurationError if the address, the certificate, the DSN or the schema is of no use;
    DatabaseEnded when `alive` says that nobody will bring the database back.
    """
    hasher = Hasher()
    pool = await open_pool(dsn, size=settings.pool_size, min_size=0)
    try:
        app = build(
            pool,
            hasher=hasher,
            pending=migrate.pending,
            heartbeat_stale_s=settings.heartbeat_stale_s,
            heartbeat_interval_s=settings.heartbeat_interval_s,
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(_work(app, settings, dsn, alive))
            try:
                await _listen(app, settings, stop, listening)
            finally:
                working.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    finally:
        hasher.close()
        await _close(pool)


async def _listen(
    app: web.Application,
    settings: Settings,
    stop: asyncio.Event,
    listening: Callable[[str], None],
) -> None:
    tls = _tls(settings)
    serves = runner(app)
    await serves.setup()
    try:
        where = settings.listen
        try:
            await web.TCPSite(serves, where.host, where.port, ssl_context=tls).start()
        except OSError as exc:
            raise ConfigurationError(_not_listening(where, exc)) from None
        bound = attrs.evolve(where, port=serves.addresses[0][1])
        listening(f"{'http' if tls is None else 'https'}://{bound}")
        await stop.wait()
        log.info("controller.stopping")
    finally:
        await serves.cleanup()


def _not_listening(where: Listen, exc: OSError) -> str:
    reason = exc.strerror if exc.errno is None else os.strerror(exc.errno)
    return f"Cannot listen on {where} ({reason}): choose another address, or stop what uses it."


def _tls(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls_cert is None:
        return None
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        tls.load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError) as exc:
        raise ConfigurationError(
            f"{settings.tls_cert} and its key cannot be used ({exc}): give a PEM pair."
        ) from None
    return tls


async def _work(
    app: web.Application, settings: Settings, dsn: str, alive: Callable[[], bool]
) -> None:
    """Bring the schema up to date as soon as the database can be reached, then keep sweeping."""
    pool, wake = app[context.POOL], app[context.WAKE]
    await _migrated(dsn)
    app[context.MIGRATED].set()
    log.info("controller.ready")
    async with (
        relaying(wake, pool, dsn),
        sweeps.running(
            pool,
            wake,
            interval_s=settings.sweep_interval_s,
            stale_s=settings.heartbeat_stale_s,
            cancel_grace_s=settings.cancel_grace_s,
        ),
    ):
        while alive():  # noqa: ASYNC110 - a process has no event to wait for
            await asyncio.sleep(LOOK_S)
    raise DatabaseEnded


async def _migrated(dsn: str) -> None:
    told = False
    while True:
        try:
            await migrate.migrate(dsn)
        except _USELESS as exc:
            raise ConfigurationError(
                f"The database cannot be used ({exc}): correct the DSN."
            ) from None
        except AWAY as exc:
            if not told:
                log.warning("database.away", error=type(exc).__name__, detail=str(exc))
            told = True
            await asyncio.sleep(LOOK_S)
        else:
            return


async def _close(pool: Pool) -> None:
    try:
        async with asyncio.timeout(CLOSE_S):
            await pool.close()
    except AWAY:
        pool.terminate()
