"""One PostgreSQL per process of the run, one migrated template in it, one clone of it per test."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import asyncpg
import pytest

from tests import memory
from tests.cut import CuttableConnection
from tests.memory import CLONING
from umbra_compute import db, embedded, migrate
from umbra_compute.db import Pool

FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "200",
    "autovacuum": "off",
}


@pytest.fixture(scope="session")
def scratch() -> Iterator[Path]:
    """A folder that another account may pass through, which pytest's own does not allow."""
    folder = Path(tempfile.mkdtemp(prefix="umbra-", dir=memory.folder()))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server_dsn(scratch: Path) -> Iterator[str]:
    """A server where databases may be made: UMBRA_TEST_DSN, or one of our own."""
    if "UMBRA_TEST_DSN" in os.environ:
        yield os.environ["UMBRA_TEST_DSN"]
        return
    server = embedded.start(scratch / "pg", settings=FAST)
    yield server.dsn
    server.stop()


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[str]:
    name = f"template_{uuid4().hex[:12]}"
    asyncio.run(_run(server_dsn, f"CREATE DATABASE {name}"))
    asyncio.run(migrate.migrate(named(server_dsn, name)))
    yield name
    asyncio.run(_run(server_dsn, f"DROP DATABASE {name}"))


@pytest.fixture
async def dsn(server_dsn: str, template: str) -> AsyncIterator[str]:
    """A migrated database of this test's own."""
    name = f"test_{uuid4().hex[:12]}"
    await _run(server_dsn, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY {CLONING}")
    yield named(server_dsn, name)
    await _run(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """A database with nothing in it."""
    name = f"empty_{uuid4().hex[:12]}"
    await _run(server_dsn, f"CREATE DATABASE {name}")
    yield named(server_dsn, name)
    await _run(server_dsn, f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def pool(dsn: str) -> AsyncIterator[Pool]:
    async with asyncpg.create_pool(
        dsn,
        min_size=1,
        max_size=8,
        connection_class=CuttableConnection,
        server_settings=db.SETTINGS,
    ) as pool:
        yield pool


def named(dsn: str, database: str) -> str:
    """Return the DSN of another database on the same server."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{database}"))


async def _run(dsn: str, sql: str) -> None:
    # Open, run, close: a template can be cloned only while nobody is connected to it.
    conn = await asyncpg.connect(dsn)
    await conn.execute(sql)
    await conn.close()
