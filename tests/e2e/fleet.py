"""Real controllers and agents, as somebody would start them."""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from umbra_compute.client import Client

ENDS_WITHIN_S = 20.0


@attrs.define
class Fleet:
    """Processes of the product on one database; ended by `fleet`."""

    folder: Path
    dsn: str
    processes: list[asyncio.subprocess.Process] = attrs.Factory(list)
    clients: list[Client] = attrs.Factory(list)

    def client(self, url: str, api_key: str) -> Client:
        """Return a client that is closed with the fleet."""
        made = Client(url, api_key)
        self.clients.append(made)
        return made

    async def controller(
        self, listen: str = "127.0.0.1:0"
    ) -> tuple[asyncio.subprocess.Process, str]:
        """Start a controller; return it and its address once it accepts connections."""
        process = await self.start(
            *("-m", "umbra_compute", "serve", "--listen", listen, "--dsn", self.dsn), out=True
        )
        if process.stdout is None:
            raise AssertionError("the controller was started with a pipe")
        async with asyncio.timeout(ENDS_WITHIN_S):
            line = (await process.stdout.readline()).decode()
        found = re.search(r"Listening on (\S+)", line)
        assert found is not None, (self.folder / "log").read_text()
        return process, found[1]

    async def command(self, *argv: str, **environment: str) -> dict[str, Any]:
        """Run a command of the controller's; return its JSON."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "umbra_compute", *argv, "--json"),
            stdout=asyncio.subprocess.PIPE,
            env=_environment() | environment,
        )
        output, _ = await process.communicate()
        assert process.returncode == 0
        told: dict[str, Any] = json.loads(output)
        return told

    async def agent(
        self, url: str, key: str, script: str, **agent: Any
    ) -> asyncio.subprocess.Process:
        """Start an agent whose jobs of kind "work" run `script` in a shell."""
        path = _configuration(self.folder, url, script, agent)
        return await self.start("-m", "umbra_agent", "run", "--config", str(path),
                                 UMBRA_NODE_KEY=key)  # fmt: skip

    async def start(
        self, *argv: str, out: bool = False, **environment: str
    ) -> asyncio.subprocess.Process:
        with (self.folder / "log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, *argv),
                stdout=asyncio.subprocess.PIPE if out else log,
                stderr=log,
                env=_environment() | environment,
            )
        self.processes.append(process)
        return process


@asynccontextmanager
async def fleet(folder: Path, dsn: str) -> AsyncIterator[Fleet]:
    """Yield a fleet; end all its processes, agents first."""
    started = Fleet(folder, dsn)
    try:
        yield started
    finally:
        for client in started.clients:
            client.close()
        for process in reversed(started.processes):
            if process.returncode is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(ENDS_WITHIN_S):
                await process.wait()


def _configuration(folder: Path, url: str, script: str, agent: dict[str, Any]) -> Path:
    told = "".join(f"{name} = {json.dumps(value)}\n" for name, value in agent.items())
    path = Path(tempfile.mkstemp(suffix=".toml", dir=folder)[1])
    path.write_text(
        f'[controller]\nurl = "{url}"\n[agent]\n{told}[[handler]]\nkinds = ["work"]\n'
        f'argv = {json.dumps(["/bin/sh", "-c", script])}\nresult = "stdout"\n'
    )
    return path


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("UMBRA_")}
