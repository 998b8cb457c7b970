"""`serve` as a process: what it says, how it ends."""

import asyncio
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.cli.process import LONG_S, start, umbra

Process = asyncio.subprocess.Process


@asynccontextmanager
async def serving(*argv: str) -> AsyncIterator[tuple[Process, str]]:
    """Yield a controller that accepts connections, and its address."""
    process = await start(
        *("serve", "--listen", "127.0.0.1:0", *argv), stdin=DEVNULL, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(LONG_S):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("Listening on http://127.0.0.1:")
        yield process, line.split()[-1]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ready(url: str) -> None:
    async with asyncio.timeout(LONG_S), ClientSession() as http:
        while True:
            async with http.get(f"{url}/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.02)


async def ended(process: Process) -> tuple[int | None, str]:
    async with asyncio.timeout(LONG_S):
        _, err = await process.communicate()
    return process.returncode, err.decode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_it_stops_in_order_when_told_to(dsn: str, number: signal.Signals) -> None:
    async with serving("--dsn", dsn) as (process, url):
        await ready(url)
        process.send_signal(number)
        code, err = await ended(process)
    assert code == 0
    assert "controller.stopped" in err
    assert "Traceback" not in err


async def test_it_says_that_it_brings_its_own_database(scratch: Path) -> None:
    folder = scratch / "said"
    async with serving("--data-dir", str(folder)) as (process, url):
        await ready(url)
        process.send_signal(signal.SIGTERM)
        code, err = await ended(process)
    assert code == 0
    assert err.splitlines()[0] == f"PostgreSQL: our own, in {folder}"


async def test_it_ends_with_its_own_database(scratch: Path) -> None:
    folder = scratch / "ended"
    async with serving("--data-dir", str(folder)) as (process, url):
        await ready(url)
        server = int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
        os.kill(server, signal.SIGQUIT)
        code, err = await ended(process)
    assert code == 1
    assert err.splitlines()[-1] == ("The embedded PostgreSQL ended: start the controller again.")


async def test_two_controllers_do_not_share_a_folder(scratch: Path) -> None:
    folder = str(scratch / "shared")
    async with serving("--data-dir", folder) as (process, url):
        await ready(url)
        ran = await umbra("serve", "--listen", "127.0.0.1:0", "--data-dir", folder)
        assert ran.code == 3
        assert ran.err.splitlines()[-1].startswith(f"{folder} is in use by process {process.pid} ")
        listed = await umbra("org", "list", "--data-dir", folder)
        assert listed.code == 0  # the operator's commands use the server that runs
