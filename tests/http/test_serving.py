"""Starting, waiting for the database, and stopping: the whole controller."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import aiohttp
import asyncpg
import attrs
import pytest
from aiohttp import web

from tests.conftest import named
from tests.http.conftest import Keys
from umbra_compute import app as wiring
from umbra_compute import migrate
from umbra_compute.config import ConfigurationError, Listen, Settings
from umbra_compute.db import Pool
from umbra_compute.http import context

ANYWHERE = Settings(listen=Listen("127.0.0.1", 0), pool_size=4)


@attrs.frozen
class Controller:
    """A controller that serves, in this process."""

    url: str
    stop: asyncio.Event
    serving: asyncio.Task[None]
    http: aiohttp.ClientSession

    async def status(self, path: str) -> int:
        async with self.http.get(self.url + path) as answer:
            return answer.status


@asynccontextmanager
async def controller(
    dsn: str, alive: Callable[[], bool] = lambda: True
) -> AsyncIterator[Controller]:
    stop, urls = asyncio.Event(), list[str]()
    serving = asyncio.create_task(
        wiring.serve(ANYWHERE, dsn, stop=stop, listening=urls.append, alive=alive)
    )
    async with aiohttp.ClientSession() as http:
        await until(lambda: _now(bool(urls) or serving.done()))
        yield Controller(urls[0], stop, serving, http)
    stop.set()
    async with asyncio.timeout(10):
        await asyncio.wait([serving])


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(10):
        while not await condition():
            await asyncio.sleep(0.02)


async def _now(value: bool) -> bool:
    return value


async def test_a_database_that_comes_late_is_migrated_and_served(
    server_dsn: str, empty_dsn: str
) -> None:
    dsn = named(server_dsn, "late_" + empty_dsn.rpartition("/")[2].partition("?")[0])
    name = dsn.rpartition("/")[2].partition("?")[0]
    admin = await asyncpg.connect(server_dsn)
    try:
        async with controller(dsn) as served:
            assert await served.status("/healthz") == 200
            assert await served.status("/readyz") == 503
            assert await served.status("/v1/keys") == 503
            await admin.execute(f"CREATE DATABASE {name}")
            await until(lambda: _is(served, "/readyz", 200))
            await until(lambda: _is(served, "/v1/keys", 401))
    finally:
        await admin.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        await admin.close()


async def _is(served: Controller, path: str, status: int) -> bool:
    return await served.status(path) == status


async def test_a_stop_answers_who_waits_and_is_quick(
    dsn: str, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    apps: list[web.Application] = []

    def runner(app: web.Application) -> web.AppRunner:
        apps.append(app)
        return make_runner(app)

    make_runner = wiring.runner
    monkeypatch.setattr(wiring, "runner", runner)
    admin = await keys.organization()
    node = await keys.node(admin.organization_id)
    async with controller(dsn) as served:
        await until(lambda: _is(served, "/readyz", 200))
        await until(lambda: _is(served, "/v1/keys", 401))

        async def claim() -> tuple[int, object]:
            url, body = f"{served.url}/v1/node/claim", {"wait_s": 30}
            async with served.http.post(url, json=body, headers=node.headers) as answer:
                return answer.status, (await answer.json())["jobs"]

        waiting = asyncio.create_task(claim())
        await until(lambda: _now(bool(apps[0][context.WAKE].waiting_organizations())))
        began = monotonic()
        served.stop.set()
        assert await waiting == (200, [])
        await served.serving
        assert monotonic() - began < 5
        with pytest.raises(aiohttp.ClientConnectorError):
            await served.status("/healthz")


async def test_an_address_in_use_is_one_sentence(dsn: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        settings = attrs.evolve(ANYWHERE, listen=Listen("127.0.0.1", port))
        with pytest.raises(ConfigurationError, match=rf"127\.0\.0\.1:{port} \(Address already"):
            await wiring.serve(settings, dsn, stop=asyncio.Event(), listening=lambda _: None)


@pytest.mark.parametrize(
    ("dsn", "says"), [("nonsense://", "scheme"), ("postgresql://h:x/", "correct the DSN")]
)
async def test_a_dsn_that_is_none_ends_the_start(dsn: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        async with asyncio.timeout(5):
            await wiring.serve(ANYWHERE, dsn, stop=asyncio.Event(), listening=lambda _: None)


async def test_a_certificate_that_is_none_ends_the_start(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("no certificate")
    settings = attrs.evolve(ANYWHERE, tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "cert.pem")
    with pytest.raises(ConfigurationError, match=r"cert\.pem"):
        await wiring.serve(settings, dsn, stop=asyncio.Event(), listening=lambda _: None)


async def test_a_schema_of_another_make_ends_the_start(dsn: str, pool: Pool) -> None:
    await pool.execute("UPDATE schema_migrations SET checksum = 'other'")
    with pytest.raises(ConfigurationError, match="0001"):
        await wiring.serve(ANYWHERE, dsn, stop=asyncio.Event(), listening=lambda _: None)
    assert await pool.fetchval("SELECT count(*) FROM schema_migrations") == len(migrate.shipped())


async def test_a_database_of_our_own_that_ended_ends_the_controller(dsn: str) -> None:
    running = [True]
    async with controller(dsn, alive=lambda: running[0]) as served:
        await until(lambda: _is(served, "/readyz", 200))
        running[0] = False
        await until(lambda: _now(served.serving.done()))
        with pytest.raises(wiring.DatabaseEnded):
            await served.serving


RUN = """
import sys
from pathlib import Path
from umbra_compute.app import run
from umbra_compute.config import Listen, Settings
from umbra_compute.log import configure
configure("json")
settings = Settings(listen=Listen("127.0.0.1", 0), data_dir=Path(sys.argv[1]))
run(settings, lambda url: print(url, flush=True))
"""


async def test_a_controller_with_its_own_database_ends_with_a_signal(scratch: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", RUN, str(scratch / "own")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30), aiohttp.ClientSession() as http:
            url = (await process.stdout.readline()).decode().strip()
            ready = False
            while not ready:
                async with http.get(f"{url}/readyz") as answer:
                    ready = answer.status == 200
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
