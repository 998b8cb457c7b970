"""Data folders, servers in this process, and controllers in others."""

import asyncio
import json
import os
import pwd
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import asyncpg
import attrs
import pytest

from umbra_compute import embedded
from umbra_compute.embedded import Server, programs
from umbra_compute.embedded.programs import Programs

CHECKOUT = Path(__file__).parents[2]
FAST = {"fsync": "off"}


@attrs.frozen
class Controller:
    """A process that runs tests/embedded/controller.py."""

    process: asyncio.subprocess.Process

    async def heard(self) -> str:
        """Return what it says next."""
        if self.process.stdout is None:
            raise AssertionError("its output is not read")
        async with asyncio.timeout(30):
            return str(json.loads(await self.process.stdout.readline()))

    def go(self) -> None:
        if self.process.stdin is None:
            raise AssertionError("it cannot be told anything")
        self.process.stdin.write(b"go\n")

    async def stop(self) -> int:
        if self.process.stdin is None:
            raise AssertionError("it cannot be told anything")
        self.process.stdin.close()
        return await self.ended()

    async def kill(self) -> None:
        self.process.kill()
        await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(30):
            return await self.process.wait()


class Controllers(Protocol):
    async def __call__(
        self, data_dir: Path, mode: str = "keeps", *, ordinary: bool = False
    ) -> Controller: ...


Start = Callable[..., Server]
Query = Callable[[str, str], Awaitable[Any]]


@pytest.fixture(scope="session")
def wheel(scratch: Path) -> Programs:
    """The programs, once, where every account can read them."""
    place = scratch / "wheel"
    place.mkdir()
    return programs.copied(programs.installed(), place)


@pytest.fixture
def data_dir(scratch: Path, wheel: Programs) -> Iterator[Path]:
    """A folder that does not hold a database yet, but the programs, which take long to copy."""
    parent = scratch / uuid4().hex[:8]
    folder = parent / "pg"
    folder.mkdir(parents=True)
    for made in (parent, folder):
        made.chmod(0o711)
    (folder / f"programs-{wheel.version}").symlink_to(wheel.folder.parents[1])
    yield folder
    shutil.rmtree(parent)


@pytest.fixture
def ordinary_dir(data_dir: Path) -> Path:
    """The same, for an ordinary user: its home, so to speak."""
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(data_dir, nobody.pw_uid, nobody.pw_gid)
        data_dir.chmod(0o700)
    return data_dir


@pytest.fixture
def start(data_dir: Path) -> Iterator[Start]:
    """Start a server of this process, and stop it at the end."""
    started: list[Server] = []

    def starting(folder: Path = data_dir, **options: Any) -> Server:
        started.append(embedded.start(folder, **{"settings": FAST, **options}))
        return started[-1]

    yield starting
    for server in started:
        if server.is_running:
            server.stop()


@pytest.fixture
async def controllers(wheel: Programs) -> AsyncIterator[Controllers]:
    """Start processes that wait to be told to go on, and end them at the end."""
    started: list[Controller] = []

    async def starting(
        data_dir: Path, mode: str = "keeps", *, ordinary: bool = False
    ) -> Controller:
        steps_down = [str(wheel.folder)] if ordinary and os.geteuid() == 0 else []
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.embedded.controller", mode, str(data_dir), *steps_down),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            cwd=CHECKOUT,
        )
        started.append(Controller(process))
        assert await started[-1].heard() == "here"
        return started[-1]

    yield starting
    for controller in started:
        if controller.process.returncode is None:
            await controller.stop()


@pytest.fixture
def query() -> Query:
    """Run one statement on a connection of its own; return the first value."""

    async def querying(dsn: str, sql: str) -> Any:
        conn = await asyncpg.connect(dsn)
        try:
            return await conn.fetchval(sql)
        finally:
            await conn.close()

    return querying
